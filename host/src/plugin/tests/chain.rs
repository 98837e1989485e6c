//! The chain: what a plugin writes is kept only if it ends well, in order, with one owner per value.

use serde_json::json;

use super::guest::{self, HANDLED, HANDLED_NONSENSE, OK, SET_ONE, SET_TWO};
use super::{call, host, manifest, pointer, source};
use crate::draft::Owner;
use crate::plugin::Manifest;
use crate::runtime::ports::{Hook, PluginError, Plugins};

#[tokio::test]
async fn what_a_plugin_writes_and_marks_is_kept_when_it_ends_well() {
    let component = guest::container(&format!("{SET_ONE}{HANDLED}{HANDLED_NONSENSE}{OK}"));
    let host = host(vec![source(manifest("a"), component)]);
    let configured = host.configure(call(json!({}))).await.unwrap();
    let label = pointer("/Labels/guest.key");
    assert_eq!(configured.draft.get(&label), Some(&json!("one")));
    assert_eq!(
        configured.draft.owner(&label),
        Some(&Owner::Plugin("a".into()))
    );
    let handled: Vec<String> = configured.handled.iter().map(ToString::to_string).collect();
    assert_eq!(handled, ["/config/linux/security_context/seccomp"]);
    assert_eq!(configured.chain_digest.len(), 64);
}

#[tokio::test]
async fn every_fault_has_its_error_and_drops_what_was_written() {
    for number in 0..4 {
        let broken = guest::container(&format!("{SET_ONE}{HANDLED}{}", guest::fault(number)));
        let host = host(vec![source(manifest("p"), broken)]);
        let given = call(json!({}));
        let before = given.draft.clone();
        let error = host.configure(given.clone()).await.unwrap_err();
        let (plugin, message) = ("p".to_owned(), "it is as it is".to_owned());
        let want = match number {
            0 => PluginError::Settings { plugin, message },
            1 => PluginError::Unsupported { plugin, message },
            2 => PluginError::RetryLater { plugin, message },
            _ => PluginError::Fatal { plugin, message },
        };
        assert_eq!(error, want);
        assert_eq!(given.draft, before);
        let status = host.status();
        assert_eq!((status[0].calls, status[0].failures), (1, 1));
    }
}

#[tokio::test]
async fn two_plugins_that_differ_are_refused_by_name_and_two_that_agree_share() {
    for (second, agree) in [(SET_ONE, true), (SET_TWO, false)] {
        let chain = host(vec![
            source(manifest("a"), guest::container(&format!("{SET_ONE}{OK}"))),
            source(manifest("b"), guest::container(&format!("{second}{OK}"))),
        ]);
        let ended = chain.configure(call(json!({}))).await;
        if agree {
            let owner = ended
                .unwrap()
                .draft
                .owner(&pointer("/Labels/guest.key"))
                .cloned();
            assert_eq!(owner, Some(Owner::Plugin("a".into())));
        } else {
            let text = ended.unwrap_err().to_string();
            assert!(
                text.contains("b and a both set /Labels/guest.key"),
                "{text}"
            );
        }
    }
}

#[tokio::test]
async fn plugins_run_by_order_and_then_by_id() {
    let at = |id: &str, order| Manifest {
        order,
        ..manifest(id)
    };
    // The first to set the label owns it; the second sets it to the same and shares.
    for (name, plugins, owner) in [
        ("order", [("a", 20), ("b", 10)], "b"),
        ("id", [("b", 10), ("a", 10)], "a"),
    ] {
        let sources = plugins
            .iter()
            .map(|(id, order)| source(at(id, *order), guest::container(&format!("{SET_ONE}{OK}"))))
            .collect();
        let configured = host(sources).configure(call(json!({}))).await.unwrap();
        assert_eq!(
            configured.draft.owner(&pointer("/Labels/guest.key")),
            Some(&Owner::Plugin(owner.into())),
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_write_without_a_grant_is_refused_at_the_call() {
    let bare = Manifest {
        grant: Default::default(),
        ..manifest("p")
    };
    let host = host(vec![source(
        bare,
        guest::container(&format!("{SET_ONE}{OK}")),
    )]);
    let text = host
        .configure(call(json!({})))
        .await
        .unwrap_err()
        .to_string();
    assert!(text.contains("p may not write /Labels/guest.key"), "{text}");
}

#[tokio::test]
async fn only_plugins_with_the_hook_run_and_count_in_the_digest() {
    let chain = |ids: &[&str]| {
        host(
            ids.iter()
                .map(|id| source(manifest(id), guest::container(OK)))
                .chain([source(
                    manifest("sandbox-only"),
                    guest::module("sandbox", OK, ""),
                )])
                .collect(),
        )
    };
    let digest = async |ids: &[&str], hook| {
        let mut call = call(json!({}));
        call.hook = hook;
        chain(ids).configure(call).await.unwrap().chain_digest
    };
    let one = digest(&["a"], Hook::Container).await;
    assert_eq!(one, digest(&["a"], Hook::Container).await, "the same chain");
    assert_ne!(one, digest(&["b"], Hook::Container).await, "another plugin");
    assert_ne!(one, digest(&["a", "b"], Hook::Container).await, "one more");
    assert_ne!(one, digest(&["a"], Hook::Sandbox).await, "another hook");
    assert_eq!(digest(&[], Hook::Container).await, "", "nobody ran");
}

#[tokio::test]
async fn a_call_waits_for_the_plugins_and_status_knows_them_before() {
    let component = guest::container(&format!("{SET_ONE}{OK}"));
    let host = host(vec![source(manifest("a"), component)]);
    let early = host.status();
    assert_eq!(early.len(), 1, "known from the start");
    let configured = host.configure(call(json!({}))).await.unwrap();
    assert!(
        configured
            .draft
            .get(&pointer("/Labels/guest.key"))
            .is_some()
    );
    let status = host.status();
    assert_eq!(status[0].error, None);
    assert_eq!(status[0].hooks, ["container"]);
    assert_eq!(status[0].digest.len(), 64);
    assert_eq!((status[0].calls, status[0].failures), (1, 0));
}
