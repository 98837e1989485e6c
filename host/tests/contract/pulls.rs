//! Cases that fetch images, from a registry of our own on this node's loopback: for real engines that share its network.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use springline::model::image::RegistryAuth;
use springline::runtime::ports::{EngineError, PullProgress};

use super::registry::{PASSWORD, Registry, USER};
use super::{SharedEngine, fresh_name, is_not_found};

fn quiet() -> PullProgress {
    Arc::new(|_| {})
}

pub async fn pulls(engine: SharedEngine, _image: &str) {
    let registry = Registry::new(&fresh_name(), false).await;
    let app = registry.reference("app");
    let steps = Arc::new(AtomicUsize::new(0));
    let progress: PullProgress = {
        let steps = Arc::clone(&steps);
        Arc::new(move |_| {
            steps.fetch_add(1, Ordering::Relaxed);
        })
    };
    engine.pull(&app, None, progress).await.expect("pull");
    assert!(steps.load(Ordering::Relaxed) > 0);
    let pulled = engine.image(&app).await.expect("image");
    assert_eq!(pulled.repo_tags, [format!("{app}:latest")], "not all tags");
    assert_eq!(
        pulled.repo_digests,
        [format!("{app}@{}", registry.digest())]
    );
    assert_eq!(pulled.user.as_deref(), Some("65535:65535"));
    let listings = registry
        .asked()
        .iter()
        .filter(|p| p.ends_with("/tags/list"))
        .count();
    assert_eq!(listings, 0, "nor asked for all tags");
    engine
        .pull(&app, None, quiet())
        .await
        .expect("what is there already");

    let one = format!("{app}:1");
    engine.pull(&one, None, quiet()).await.expect("another tag");
    assert_eq!(engine.image(&one).await.expect("image").id, pulled.id);
    engine.remove_image(&one).await.expect("remove one tag");
    assert!(is_not_found(engine.image(&one).await));
    engine.remove_image(&app).await.expect("remove the other");
    assert!(is_not_found(engine.image(&app).await));

    let by_digest = format!("{app}@{}", registry.digest());
    engine
        .pull(&by_digest, None, quiet())
        .await
        .expect("by digest");
    let pulled = engine.image(&by_digest).await.expect("image");
    assert_eq!(
        (pulled.repo_tags.len(), pulled.repo_digests),
        (0, vec![by_digest.clone()])
    );
    engine
        .remove_image(&by_digest)
        .await
        .expect("remove by digest");
    assert!(is_not_found(engine.image(&by_digest).await));

    for (case, missing) in [
        ("tag", format!("{app}:none")),
        ("name", registry.reference("none")),
        ("digest", format!("{app}@sha256:{}", "0".repeat(64))),
    ] {
        let result = engine.pull(&missing, None, quiet()).await;
        assert!(is_not_found(result.clone()), "missing {case}: {result:?}");
    }
    for bad in ["", "a/UPPER:x", "a b", "sha256:0000"] {
        let result = engine.pull(bad, None, quiet()).await;
        assert!(
            matches!(result, Err(EngineError::BadRequest(_))),
            "{bad:?}: {result:?}"
        );
    }
}

pub async fn pulls_with_a_password(engine: SharedEngine, _image: &str) {
    let registry = Registry::new(&fresh_name(), true).await;
    let app = registry.reference("app:1");
    let auth = |password: &str| RegistryAuth {
        username: USER.into(),
        password: password.into(),
        ..RegistryAuth::default()
    };
    for (case, auth) in [("none", None), ("a wrong one", Some(auth("wrong")))] {
        let result = engine.pull(&app, auth.as_ref(), quiet()).await;
        assert!(
            matches!(result, Err(EngineError::Denied(_))),
            "{case}: {result:?}"
        );
        assert!(!format!("{result:?}").contains("wrong"), "{result:?}");
    }
    engine
        .pull(&app, Some(&auth(PASSWORD)), quiet())
        .await
        .expect("the right one");
    engine.remove_image(&app).await.expect("remove");
}
