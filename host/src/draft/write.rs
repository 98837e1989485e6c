//! Writing to a draft: grants, owners, conflicts, take-overs.
//!
//! A write is refused at the call, naming what stands in its way; nothing of it is kept then. The host's own writes
//! ([`Draft::put`]) have no grant to check and come before any plugin's.

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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pointer(text: &str) -> Pointer {
        text.parse().unwrap()
    }

    fn plugin(id: &str) -> Owner {
        Owner::Plugin(id.into())
    }

    fn grant(write: &[&str]) -> Grant {
        Grant {
            write: write.iter().map(|p| pointer(p)).collect(),
            take_over: vec![],
        }
    }

    fn core_draft() -> Draft {
        let mut draft = Draft::default();
        draft.put(&pointer("/Env/PATH"), json!("/bin"));
        draft.put(&pointer("/HostConfig/Memory"), json!(64));
        draft.put(&pointer("/HostConfig/Dns"), json!(["10.0.0.1"]));
        draft.put(&pointer("/Image"), json!("busybox"));
        draft
    }

    #[test]
    fn ungranted_immutable_and_foreign_values_are_refused_at_the_call() {
        let draft = core_draft();
        let wide = grant(&["/Env", "/HostConfig", "/Labels", "/Image"]);
        for (name, grant, at, value, want) in [
            ("no grant", &grant(&[]), "/Env/A", json!("1"), "NotGranted"),
            ("image", &wide, "/Image", json!("x"), "NotGranted"),
            (
                "network mode",
                &wide,
                "/HostConfig/NetworkMode",
                json!("host"),
                "NotGranted",
            ),
            (
                "parent of an immutable one",
                &wide,
                "/HostConfig",
                json!({}),
                "NotGranted",
            ),
            (
                "our label",
                &wide,
                "/Labels/io.kubernetes.sandbox.id",
                json!("x"),
                "NotGranted",
            ),
            (
                "core's value by a parent grant",
                &wide,
                "/Env/PATH",
                json!("/x"),
                "NotGranted",
            ),
            (
                "an entry of the wrong kind",
                &wide,
                "/Env/A",
                json!(1),
                "BadValue",
            ),
            (
                "a keyed list as a list",
                &wide,
                "/HostConfig/Mounts",
                json!([]),
                "BadValue",
            ),
            (
                "into a scalar",
                &wide,
                "/HostConfig/Memory/x",
                json!(1),
                "UnknownPointer",
            ),
            (
                "into a list that core set",
                &wide,
                "/HostConfig/Dns/0",
                json!("1.1.1.1"),
                "UnknownPointer",
            ),
            (
                "an immutable one in another spelling",
                &wide,
                "/HostConfig/networkmode",
                json!("host"),
                "NotGranted",
            ),
            (
                "the parent in another spelling",
                &grant(&["/hostConfig"]),
                "/hostConfig/NetworkMode",
                json!("host"),
                "NotGranted",
            ),
            (
                "core's value in another spelling",
                &wide,
                "/HostConfig/memory",
                json!(1),
                "UnknownPointer",
            ),
            (
                "a keyed list in another spelling",
                &grant(&["/env"]),
                "/env",
                json!(["PATH=/x"]),
                "UnknownPointer",
            ),
            (
                "a name that the engine folds",
                &wide,
                "/HostConfig/MaskedPath\u{17f}",
                json!([]),
                "UnknownPointer",
            ),
            (
                "inside a variable",
                &wide,
                "/Env/A/b",
                json!("c"),
                "UnknownPointer",
            ),
            (
                "the key of a mount from inside",
                &wide,
                "/HostConfig/Mounts/~1data/target",
                json!("/etc"),
                "UnknownPointer",
            ),
            (
                "a variable with = in its name",
                &wide,
                "/Env/A=B",
                json!("c"),
                "BadValue",
            ),
            (
                "a second spelling of an option, in a whole list",
                &wide,
                "/HostConfig/SecurityOpt",
                json!({"label=disable": ""}),
                "BadValue",
            ),
        ] {
            let mut copy = draft.clone();
            let refusal = copy
                .set(&plugin("p"), grant, &pointer(at), value)
                .unwrap_err();
            assert!(
                format!("{refusal:?}").starts_with(want),
                "{name}: {refusal:?}"
            );
            assert_eq!(copy, draft, "{name}: nothing may change");
        }
    }

    #[test]
    fn a_listed_pointer_may_replace_cores_value() {
        let mut draft = core_draft();
        let grant = grant(&["/HostConfig/Memory"]);
        draft
            .set(
                &plugin("p"),
                &grant,
                &pointer("/HostConfig/Memory"),
                json!(128),
            )
            .unwrap();
        assert_eq!(
            draft.owner(&pointer("/HostConfig/Memory")),
            Some(&plugin("p"))
        );
    }

    #[test]
    fn two_plugins_share_equal_values_and_conflict_on_others_by_name() {
        let mut draft = core_draft();
        let grant = grant(&["/Env"]);
        draft
            .set(&plugin("a"), &grant, &pointer("/Env/X"), json!("1"))
            .unwrap();
        draft
            .set(&plugin("b"), &grant, &pointer("/Env/X"), json!("1"))
            .unwrap();
        let refusal = draft
            .set(&plugin("b"), &grant, &pointer("/Env/X"), json!("2"))
            .unwrap_err();
        let text = refusal.to_string();
        assert!(matches!(refusal, Refusal::Conflict(_)));
        assert!(
            text.contains("a ") && text.contains("b ") && text.contains("/Env/X"),
            "{text}"
        );
        let whole = draft
            .set(&plugin("b"), &grant, &pointer("/Env"), json!({}))
            .unwrap_err();
        assert!(
            !matches!(whole, Refusal::BadValue(_)),
            "a parent conflicts with owned children: {whole:?}"
        );
    }

    #[test]
    fn taking_over_needs_a_grant_and_is_recorded() {
        let mut draft = core_draft();
        let mut grant = grant(&["/Env"]);
        draft
            .set(&plugin("a"), &grant, &pointer("/Env/X"), json!("1"))
            .unwrap();
        let at = pointer("/Env/X");
        assert!(
            draft
                .take_over(&plugin("b"), &grant, &at, "because")
                .is_err()
        );
        grant.take_over = vec![pointer("/Env")];
        draft
            .take_over(&plugin("b"), &grant, &at, "because")
            .unwrap();
        draft.set(&plugin("b"), &grant, &at, json!("2")).unwrap();
        assert_eq!(draft.get(&at), Some(&json!("2")));
        assert_eq!(
            draft.taken().first().map(|t| t.from.clone()),
            Some(plugin("a"))
        );
    }

    #[test]
    fn removal_forgets_the_value_and_keeps_the_owner_rule() {
        let mut draft = core_draft();
        let grant = grant(&["/Env/PATH"]);
        draft
            .remove(&plugin("a"), &grant, &pointer("/Env/PATH"))
            .unwrap();
        assert_eq!(draft.get(&pointer("/Env/PATH")), None);
        assert!(
            draft
                .remove(&plugin("a"), &grant, &pointer("/Env/OTHER"))
                .is_err()
        );
    }

    #[test]
    fn a_part_of_a_list_cannot_be_removed_or_taken() {
        let mut draft = core_draft();
        let mut grant = grant(&["/HostConfig/Dns", "/HostConfig/Dns/0"]);
        grant.take_over = vec![pointer("/HostConfig/Dns")];
        let before = draft.clone();
        let part = pointer("/HostConfig/Dns/0");
        for (name, refusal) in [
            ("remove", draft.remove(&plugin("a"), &grant, &part)),
            (
                "take over",
                draft.take_over(&plugin("a"), &grant, &part, "x"),
            ),
        ] {
            assert!(
                matches!(refusal, Err(Refusal::UnknownPointer(_))),
                "{name}: {refusal:?}"
            );
        }
        assert_eq!(draft, before);
    }

    #[test]
    fn a_second_plugin_cannot_write_a_field_under_another_spelling() {
        let mut draft = core_draft();
        let grant = grant(&["/HostConfig"]);
        let value = json!(1);
        draft
            .set(
                &plugin("a"),
                &grant,
                &pointer("/HostConfig/NewThing"),
                value,
            )
            .unwrap();
        let refusal = draft
            .set(
                &plugin("b"),
                &grant,
                &pointer("/HostConfig/newThing"),
                json!(2),
            )
            .unwrap_err();
        assert!(refusal.to_string().contains("NewThing"), "{refusal}");
    }
}
