//! Ending: signals become one value that the server waits on.
