//! On the wire: a scripted engine on a unix socket.
