//! The verbs: what each RPC does, in terms of the ports.

pub mod ports;
