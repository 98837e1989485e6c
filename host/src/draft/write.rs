//! Writing to a draft: grants, owners, conflicts, take-overs.
//!
//! A write is refused at the call, naming what stands in its way; nothing of it is kept then. The host's own writes
//! ([`Draft::put`]) have no grant to check and come before any plugin's.

#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use super::check::{check_immutable, check_value};
use super::{Draft, Owner, Pointer, TakeOver};

/// What a plugin may write, from its node manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grant {
    /// Pointers it may write, each with all that lies below. A value of the host's may be replaced only where its very
    /// pointer is listed.
    pub write: Vec<Pointer>,
    /// Pointers it may take over from another plugin, each with all that lies below.
    pub take_over: Vec<Pointer>,
}

/// Why a write was not done (the contract's `refusal`).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Another plugin owns it with another value.
    #[error("{0}")]
    Conflict(String),
    /// The manifest does not grant it.
    #[error("{0}")]
    NotGranted(String),
    /// The value cannot stand there.
    #[error("{0}")]
    BadValue(String),
    /// No such place.
    #[error("{0}")]
    UnknownPointer(String),
}

impl Draft {
    /// The host's own write.
    pub fn put(&mut self, pointer: &Pointer, value: Value) {
        self.store(pointer, value);
        self.owners.insert(pointer.clone(), Owner::Core);
    }

    /// A plugin's write.
    ///
    /// # Errors
    /// A [`Refusal`] that says which rule stands in the way; the draft is unchanged then.
    pub fn set(
        &mut self,
        by: &Owner,
        grant: &Grant,
        pointer: &Pointer,
        value: Value,
    ) -> Result<(), Refusal> {
        self.check_writable(by, grant, pointer)?;
        check_value(pointer, &value)?;
        if self.get(pointer) == Some(&value) {
            // Two writers that agree share the value; the first stays its owner.
            self.owners
                .entry(pointer.clone())
                .or_insert_with(|| by.clone());
            return Ok(());
        }
        self.check_shape(pointer)?;
        self.check_owner(by, grant, pointer)?;
        self.own(by, pointer);
        self.store(pointer, value);
        Ok(())
    }

    /// A plugin's removal of a value. Removing what is not there is fine.
    ///
    /// # Errors
    /// As [`Draft::set`].
    pub fn remove(&mut self, by: &Owner, grant: &Grant, pointer: &Pointer) -> Result<(), Refusal> {
        self.check_writable(by, grant, pointer)?;
        if self.get(pointer).is_none() {
            return Ok(());
        }
        self.check_shape(pointer)?;
        self.check_owner(by, grant, pointer)?;
        self.own(by, pointer);
        let Some((last, above)) = pointer.tokens().split_last() else {
            return Ok(());
        };
        let mut at = Some(&mut self.doc);
        for token in above {
            at = at
                .and_then(|map| map.get_mut(token))
                .and_then(Value::as_object_mut);
        }
        if let Some(map) = at {
            map.remove(last);
        }
        Ok(())
    }

    /// Makes the value at `pointer` the plugin's own, whoever had it; a `set` may follow.
    ///
    /// # Errors
    /// [`Refusal::NotGranted`] without a take-over grant, [`Refusal::UnknownPointer`] where nothing stands.
    pub fn take_over(
        &mut self,
        by: &Owner,
        grant: &Grant,
        pointer: &Pointer,
        reason: &str,
    ) -> Result<(), Refusal> {
        check_immutable(pointer)?;
        self.check_names(pointer)?;
        if !grant
            .take_over
            .iter()
            .any(|granted| granted.covers(pointer))
        {
            return Err(Refusal::NotGranted(format!(
                "{by} may not take over {pointer}: no grant.take-over of its manifest covers it"
            )));
        }
        let Some(from) = self.owner(pointer).cloned() else {
            return Err(Refusal::UnknownPointer(format!(
                "nothing stands at {pointer} to take over"
            )));
        };
        self.check_shape(pointer)?;
        if from != *by {
            self.own(by, pointer);
            self.taken.push(TakeOver {
                pointer: pointer.clone(),
                from,
                by: by.clone(),
                reason: reason.to_owned(),
            });
        }
        Ok(())
    }

    fn check_writable(&self, by: &Owner, grant: &Grant, pointer: &Pointer) -> Result<(), Refusal> {
        check_immutable(pointer)?;
        self.check_names(pointer)?;
        if grant.write.iter().any(|granted| granted.covers(pointer)) {
            return Ok(());
        }
        Err(Refusal::NotGranted(format!(
            "{by} may not write {pointer}: no grant.write of its manifest covers it"
        )))
    }

    fn check_owner(&self, by: &Owner, grant: &Grant, pointer: &Pointer) -> Result<(), Refusal> {
        let in_the_way = self
            .owners
            .iter()
            .filter(|(owned, _)| owned.covers(pointer) || pointer.covers(owned))
            .find(|(owned, owner)| match owner {
                owner if *owner == by => false,
                Owner::Core => !grant.write.contains(owned),
                Owner::Plugin(_) => true,
            });
        match in_the_way {
            None => Ok(()),
            Some((owned, Owner::Core)) => Err(Refusal::NotGranted(format!(
                "{by} may not replace the value that core set at {owned}: its grant.write must list that very pointer"
            ))),
            Some((owned, owner)) => Err(Refusal::Conflict(format!(
                "{by} and {owner} both set {owned}, to different values"
            ))),
        }
    }

    /// A pointer may go through objects only (keyed lists are objects here), never into an array or a scalar.
    fn check_shape(&self, pointer: &Pointer) -> Result<(), Refusal> {
        let tokens = pointer.tokens();
        for n in 1..tokens.len() {
            let above = Pointer::of(tokens.iter().take(n).cloned());
            match self.get(&above) {
                None | Some(Value::Object(_)) => {}
                Some(_) => {
                    return Err(Refusal::UnknownPointer(format!(
                        "{pointer} leads into {above}, which is not an object; write {above} as a whole"
                    )));
                }
            }
        }
        Ok(())
    }

    fn own(&mut self, by: &Owner, pointer: &Pointer) {
        self.owners.retain(|owned, _| !pointer.covers(owned));
        self.owners.insert(pointer.clone(), by.clone());
    }

    fn store(&mut self, pointer: &Pointer, value: Value) {
        let Some((last, above)) = pointer.tokens().split_last() else {
            return;
        };
        let mut at = &mut self.doc;
        for token in above {
            let child = at
                .entry(token.clone())
                .or_insert_with(|| Value::Object(Map::new()));
            if !child.is_object() {
                *child = Value::Object(Map::new());
            }
            match child {
                Value::Object(map) => at = map,
                _ => return,
            }
        }
        at.insert(last.clone(), value);
    }
}
