//! Random sequences of verbs against a small model, with failing calls, processes that end, containers that vanish and
//! daemons that are killed in between.
//!
//! Whatever happens: no sandbox is READY without its mark, list and status agree, a stop and a removal that went well leave
//! what they say, and in the end everything can be removed.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use proptest::prelude::*;
use springline::error::{Error, Kind};
use springline::model::container::ContainerState;
use springline::model::sandbox::SandboxState;
use springline::runtime::container::list::ContainerFilter;
use springline::runtime::ports::SandboxStore;
use springline::runtime::sandbox::list::SandboxFilter;

use crate::fake::{How, Pod, When, World, container, pod};

/// One thing that happens. Numbers pick among the IDs seen so far, those that are gone too.
#[derive(Debug, Clone)]
enum Step {
    Run {
        pod: u8,
    },
    StopPod(usize),
    RemovePod(usize),
    Create {
        pod: usize,
        name: u8,
        broken: bool,
    },
    Start(usize),
    Stop(usize),
    Remove(usize),
    /// A process ends by itself.
    Ends(usize),
    PodEnds(usize),
    /// Somebody removes it behind our back.
    Vanishes(usize),
    PodVanishes(usize),
    /// The daemon is killed and starts again.
    Restart,
}

/// A call of the step that goes wrong: which one, and how.
type Fault = Option<(usize, How)>;

fn step() -> impl Strategy<Value = Step> {
    let id = || 0..16_usize;
    prop_oneof![
        4 => (0..3_u8).prop_map(|pod| Step::Run { pod }),
        2 => id().prop_map(Step::StopPod),
        2 => id().prop_map(Step::RemovePod),
        5 => (id(), 0..2_u8, prop::bool::weighted(0.2))
            .prop_map(|(pod, name, broken)| Step::Create { pod, name, broken }),
        5 => id().prop_map(Step::Start),
        2 => id().prop_map(Step::Stop),
        2 => id().prop_map(Step::Remove),
        1 => id().prop_map(Step::Ends),
        1 => id().prop_map(Step::PodEnds),
        1 => id().prop_map(Step::Vanishes),
        1 => id().prop_map(Step::PodVanishes),
        1 => Just(Step::Restart),
    ]
}

fn fault() -> impl Strategy<Value = Fault> {
    let how = prop_oneof![Just(How::Refuse), Just(How::LoseAnswer)];
    prop_oneof![
        3 => Just(None),
        1 => (0..14_usize, how).prop_map(Some),
    ]
}

/// What is expected of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Expect {
    Ready,
    NotReady,
    /// A call about it failed half way.
    Either,
    Gone,
}

struct Model {
    world: World,
    /// Every sandbox that RunPodSandbox gave, oldest first.
    pods: Vec<(Pod, Expect)>,
    /// Every container that CreateContainer gave.
    containers: Vec<String>,
}

impl Model {
    fn new() -> Self {
        Self {
            world: World::new(),
            pods: Vec::new(),
            containers: Vec::new(),
        }
    }

    fn pod_id(&self, n: usize) -> String {
        let n = n.checked_rem(self.pods.len());
        n.map_or("0123456789ab".into(), |n| self.pods[n].0.id.clone())
    }

    fn container_id(&self, n: usize) -> String {
        let n = n.checked_rem(self.containers.len());
        n.map_or("0123456789ab".into(), |n| self.containers[n].clone())
    }

    fn expect(&mut self, id: &str, expect: Expect) {
        let there = self.world.engine.look(id).is_some();
        let expect = if there { expect } else { Expect::Gone };
        for (pod, expected) in &mut self.pods {
            if pod.id == id && *expected != Expect::Gone {
                *expected = expect;
            }
        }
    }

    async fn take(&mut self, step: &Step) {
        let runtime = self.world.runtime.clone();
        match step {
            Step::Run { pod: n } => self.run(&format!("pod{n}")).await,
            Step::StopPod(n) => {
                let id = self.pod_id(*n);
                let stopped = runtime.stop_pod_sandbox(&id).await.is_ok();
                self.expect(
                    &id,
                    if stopped {
                        Expect::NotReady
                    } else {
                        Expect::Either
                    },
                );
                self.world.script.reset();
                if stopped {
                    self.assert_nothing_runs_in(&id).await;
                }
            }
            Step::RemovePod(n) => {
                let id = self.pod_id(*n);
                let removed = runtime.remove_pod_sandbox(&id).await.is_ok();
                self.expect(
                    &id,
                    if removed {
                        Expect::Gone
                    } else {
                        Expect::Either
                    },
                );
            }
            Step::Create { pod, name, broken } => self.create(*pod, *name, *broken).await,
            Step::Start(n) => {
                let _ = runtime.start_container(&self.container_id(*n)).await;
            }
            Step::Stop(n) => {
                let id = self.container_id(*n);
                if runtime.stop_container(&id, Duration::ZERO).await.is_ok() {
                    self.world.script.reset();
                    let status = self.world.runtime.container_status(&id).await;
                    let running = status.is_ok_and(|s| s.life.state == ContainerState::Running);
                    assert!(!running, "{id} was stopped and runs");
                }
            }
            Step::Remove(n) => {
                let id = self.container_id(*n);
                if runtime.remove_container(&id).await.is_ok() {
                    assert_eq!(self.world.engine.look(&id), None, "{id} was removed");
                }
            }
            Step::Ends(n) => self.world.engine.exit(&self.container_id(*n), 1),
            Step::PodEnds(n) => {
                let id = self.pod_id(*n);
                self.world.engine.exit(&id, 0);
                self.expect(&id, Expect::NotReady);
            }
            Step::Vanishes(n) => self.vanish(&self.container_id(*n)),
            Step::PodVanishes(n) => {
                let id = self.pod_id(*n);
                self.vanish(&id);
                self.expect(&id, Expect::Gone);
            }
            Step::Restart => {
                self.world.restart();
                let _ = self.world.runtime.recover().await;
            }
        }
    }

    fn vanish(&self, id: &str) {
        if self.world.engine.look(id).is_some() {
            self.world.engine.lose(id);
        }
    }

    async fn run(&mut self, name: &str) {
        let config = pod(name);
        let request = self.world.run_request(&config);
        let before = self.world.engine.container_ids();
        if let Ok(id) = self.world.runtime.run_pod_sandbox(request).await {
            let id = id.to_string();
            self.pods.push((Pod { config, id }, Expect::Ready));
        }
        // A dead holder of the name may have been replaced.
        let after = self.world.engine.container_ids();
        for id in before.iter().filter(|id| !after.contains(id)) {
            self.expect(id, Expect::Gone);
        }
    }

    async fn create(&mut self, n: usize, name: u8, broken: bool) {
        let Some(n) = n.checked_rem(self.pods.len()) else {
            return;
        };
        let mut config = container(&format!("c{name}"));
        if broken {
            config.command = vec!["/no/such".into()];
        }
        let request = self.world.create_request(&self.pods[n].0, &config);
        if let Ok(id) = self.world.runtime.create_container(request).await {
            self.containers.push(id.to_string());
        }
    }

    async fn assert_nothing_runs_in(&self, sandbox: &str) {
        let filter = ContainerFilter {
            sandbox_id: sandbox.to_owned(),
            state: Some(ContainerState::Running),
            ..ContainerFilter::default()
        };
        let running = self.world.runtime.list_containers(&filter).await.unwrap();
        assert_eq!(running, [], "in a sandbox that was stopped");
    }

    /// What must hold after every step.
    async fn check(&self) {
        self.check_sandboxes().await;
        self.check_containers().await;
    }

    async fn check_sandboxes(&self) {
        let runtime = &self.world.runtime;
        let all = SandboxFilter::default();
        let mut listed = BTreeMap::new();
        for sandbox in runtime.list_pod_sandbox(&all).await.unwrap() {
            let id = sandbox.id.as_str();
            let status = runtime.pod_sandbox_status(id).await.unwrap().summary;
            assert_eq!(status.state, sandbox.state, "list and status of {id}");
            assert_eq!(status.metadata, sandbox.metadata, "{id}");
            assert_eq!(status.meta, sandbox.meta, "{id}");
            if sandbox.state == SandboxState::Ready {
                let record = self.world.store.get(id).expect("READY has a record");
                assert!(record.complete, "READY has the mark: {id}");
                let known = self.pods.iter().any(|(pod, _)| pod.id == id);
                assert!(known, "READY, and RunPodSandbox never said so: {id}");
            }
            listed.insert(id.to_owned(), sandbox.state);
        }
        for (pod, expected) in &self.pods {
            let got = listed.get(&pod.id);
            match expected {
                Expect::Ready => assert_eq!(got, Some(&SandboxState::Ready), "{}", pod.id),
                Expect::NotReady => assert_eq!(got, Some(&SandboxState::NotReady), "{}", pod.id),
                Expect::Either => {}
                Expect::Gone => {
                    assert_eq!(got, None, "{}", pod.id);
                    let status = runtime.pod_sandbox_status(&pod.id).await;
                    assert!(is_not_found(&status), "{status:?}");
                }
            }
        }
    }

    async fn check_containers(&self) {
        let runtime = &self.world.runtime;
        let all = ContainerFilter::default();
        for listed in runtime.list_containers(&all).await.unwrap() {
            let id = listed.id.as_str();
            let status = runtime.container_status(id).await.unwrap();
            assert_eq!(status.life.state, listed.state, "list and status of {id}");
            assert_eq!(status.summary.meta, listed.meta, "{id}");
            assert_eq!(status.summary.image_ref, listed.image_ref, "{id}");
            let life = status.life;
            let times = (life.started_at > 0, life.finished_at > 0);
            let want = match life.state {
                ContainerState::Created => (false, false),
                ContainerState::Running => (true, false),
                ContainerState::Exited => (true, true),
                ContainerState::Unknown => times,
            };
            assert_eq!(times, want, "{id}: {life:?}");
            assert!(life.finished_at == 0 || life.finished_at >= life.started_at);
        }
    }

    /// Everything can be removed, and then nothing is left.
    async fn end(mut self) {
        self.world.restart();
        let runtime = self.world.runtime.clone();
        let containers = runtime.list_containers(&ContainerFilter::default()).await;
        let sandboxes = runtime.list_pod_sandbox(&SandboxFilter::default()).await;
        for sandbox in sandboxes.unwrap() {
            let id = sandbox.id.as_str();
            runtime.stop_pod_sandbox(id).await.unwrap();
            self.assert_nothing_runs_in(id).await;
            runtime.stop_pod_sandbox(id).await.unwrap();
            runtime.remove_pod_sandbox(id).await.unwrap();
            runtime.remove_pod_sandbox(id).await.unwrap();
        }
        // Those whose sandbox vanished.
        for container in containers.unwrap() {
            runtime
                .remove_container(container.id.as_str())
                .await
                .unwrap();
        }
        runtime.recover().await.unwrap();
        self.world.assert_clean("everything was removed");
    }
}

fn is_not_found<T>(result: &Result<T, Error>) -> bool {
    result.as_ref().is_err_and(|e| e.kind() == Kind::NotFound)
}

fn block_on(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap()
        .block_on(test);
}

/// `PROPTEST_CASES=20000` for a long run.
fn config() -> ProptestConfig {
    let given = std::env::var_os("PROPTEST_CASES").is_some();
    let defaults = ProptestConfig::default();
    ProptestConfig {
        cases: if given { defaults.cases } else { 192 },
        // What was found becomes a test of its own, with a name.
        failure_persistence: None,
        ..defaults
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn one_after_another(steps in prop::collection::vec((step(), fault()), 1..40)) {
        block_on(async {
            let mut model = Model::new();
            for (step, fault) in &steps {
                model.world.script.reset();
                if let Some((nth, how)) = fault {
                    model.world.script.fault(When::Call(*nth), how.clone());
                }
                model.take(step).await;
                model.world.script.reset();
                model.check().await;
            }
            model.end().await;
        });
    }

    /// Several at once, as the kubelet's workers do. What each of them ends in is open; the invariants are not.
    #[test]
    fn side_by_side(rounds in prop::collection::vec(prop::collection::vec(step(), 1..6), 1..8)) {
        block_on(async {
            let mut model = Model::new();
            for steps in &rounds {
                let world = &model.world;
                let made = join_all(steps.iter().map(|step| side_step(world, &model, step))).await;
                for pod in made.into_iter().flatten() {
                    model.pods.push((pod, Expect::Either));
                }
                model.check().await;
            }
            model.end().await;
        });
    }
}

/// A step beside others: nothing is known of its outcome.
async fn side_step(world: &World, model: &Model, step: &Step) -> Option<Pod> {
    let runtime = &world.runtime;
    match step {
        Step::Run { pod: n } => {
            let config = pod(&format!("pod{n}"));
            let request = world.run_request(&config);
            let id = runtime.run_pod_sandbox(request).await.ok()?;
            return Some(Pod {
                config,
                id: id.to_string(),
            });
        }
        Step::StopPod(n) => drop(runtime.stop_pod_sandbox(&model.pod_id(*n)).await),
        Step::RemovePod(n) => drop(runtime.remove_pod_sandbox(&model.pod_id(*n)).await),
        Step::Create { pod, name, .. } => {
            let n = pod.checked_rem(model.pods.len())?;
            let config = container(&format!("c{name}"));
            let request = world.create_request(&model.pods[n].0, &config);
            if let Ok(id) = runtime.create_container(request).await {
                let _ = runtime.start_container(id.as_str()).await;
            }
        }
        Step::PodEnds(n) => world.engine.exit(&model.pod_id(*n), 0),
        Step::PodVanishes(n) => model.vanish(&model.pod_id(*n)),
        _ => {
            let all = ContainerFilter::default();
            runtime.list_containers(&all).await.unwrap();
        }
    }
    None
}
