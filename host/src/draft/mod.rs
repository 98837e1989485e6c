//! The engine's create body while it is being built: normalised JSON in which every value has an owner.
//!
//! The host translates first (owner [`Owner::Core`], see [`build`]), then plugins write through [`Draft::set`] and its
//! sisters, each on a clone that is kept only if the plugin ends well. The finished draft *is* the body, so a field that no
//! client library knows yet reaches the engine. Knows the engine's field names; must not know its client, gRPC or
//! WebAssembly. A write fails with a [`Refusal`] and leaves the draft as it was.

pub mod build;
mod check;
mod keyed;
mod pointer;
mod write;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

pub use pointer::{Pointer, PointerError, lookup};
pub use write::{Grant, Refusal};

/// Who a value belongs to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// The daemon's own translation.
    Core,
    /// The plugin with this ID.
    Plugin(String),
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Core => f.write_str("core"),
            Self::Plugin(id) => f.write_str(id),
        }
    }
}

/// A value that was taken over: what `explain` shows of the loser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakeOver {
    /// Where.
    pub pointer: Pointer,
    /// Whose value it was.
    pub from: Owner,
    /// Who has it now.
    pub by: Owner,
    /// Why, in the new owner's words.
    pub reason: String,
}

/// A create body under construction.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Draft {
    doc: Map<String, Value>,
    owners: BTreeMap<Pointer, Owner>,
    taken: Vec<TakeOver>,
}

impl Draft {
    /// The value at `pointer`, in normal form.
    pub fn get(&self, pointer: &Pointer) -> Option<&Value> {
        let (first, rest) = pointer.tokens().split_first()?;
        rest.iter().try_fold(self.doc.get(first)?, pointer::step)
    }

    /// Who owns the value at `pointer` (set there or as part of something above it).
    pub fn owner(&self, pointer: &Pointer) -> Option<&Owner> {
        self.get(pointer)?;
        let tokens = pointer.tokens();
        (1..=tokens.len()).rev().find_map(|n| {
            let above = Pointer::of(tokens.iter().take(n).cloned());
            self.owners.get(&above)
        })
    }

    /// Every owned pointer with its owner, in order.
    pub fn owners(&self) -> impl Iterator<Item = (&Pointer, &Owner)> {
        self.owners.iter()
    }

    /// What was taken over from whom.
    pub fn taken(&self) -> &[TakeOver] {
        &self.taken
    }

    /// The body that goes to the engine.
    pub fn to_body(&self) -> Value {
        keyed::to_engine(&self.doc)
    }

    /// The normal form itself, for display.
    pub fn normal_form(&self) -> &Map<String, Value> {
        &self.doc
    }
}
