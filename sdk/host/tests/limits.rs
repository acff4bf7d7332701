//! Whatever a policy does, it ends as a value that names it, and other policies are not affected.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may end here, and the line says where"
)]

use std::{
    io::ErrorKind,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use opensdn_policy_build::component_of;
use opensdn_policy_host::{
    Binding, Cache, CacheError, Context, Digest, Engine, FailureReason, Limits, LoadError,
    MAX_LOOKUP_BYTES, MAX_TEXT_BYTES, Mode, Operation, Policy, PolicySet, Ratcheting, Request,
    Scope, Verdict,
    lookup::{Answer, FoundObject, Index, Lookup, NoLookup, up_to_the_limit},
    scan,
};
use tokio::time::Instant;

const LOOP: &str = "(loop $again (br $again))";
const GROW: &str = "(loop $again
    (if (i32.eq (memory.grow (i32.const 16)) (i32.const -1)) (then unreachable))
    (br $again))";
const FIND: &str = "(call $find
    (i32.const 160) (i32.const 10) (i32.const 0) (i32.const 0) (i32.const 4000))";

/// The first 32.
const FIND_FIRST: &str = "(call $find_first
    (i32.const 160) (i32.const 10) (i32.const 0) (i32.const 0) (i32.const 32) (i32.const 4000))";
/// Stops if the last look-up failed or did not find so many.
fn found(count: usize) -> String {
    format!(
        "(if (i32.load8_u (i32.const 4000)) (then unreachable))
        (if (i32.ne (i32.load (i32.const 4008)) (i32.const {count})) (then unreachable))"
    )
}

/// The component of `tests/guests/policy.wat` with code put in place of its marks.
fn guest(marks: &[(&str, &str)]) -> Vec<u8> {
    let mut text = include_str!("guests/policy.wat").to_owned();
    for (mark, code) in marks {
        text = text.replace(&format!("(; {mark} ;)"), code);
    }
    component_of(&wat::parse_str(text).unwrap()).unwrap()
}

fn validating(code: &str) -> Vec<u8> {
    guest(&[("VALIDATE", code)])
}

fn engine() -> Engine {
    Engine::start(8).unwrap()
}

async fn load(engine: &Engine, bytes: &[u8]) -> Result<Policy, LoadError> {
    Policy::load(engine, bytes, None, None).await
}

fn binding(name: &str, policy: Policy) -> Binding {
    Binding {
        name: name.to_owned(),
        policy,
        settings: "{}".to_owned(),
        mode: Mode::Enforce,
        failure_mode: None,
        ratcheting: Ratcheting::Enabled,
        scope: Scope::default(),
        limits: Limits::default(),
    }
}

async fn evaluate(set: &PolicySet, lookup: Arc<dyn Lookup>) -> Verdict {
    let mut paths = scan::Paths::new();
    let mount = paths.mount("/object", set.paths());
    let found = scan::scan(br#"{"object":{"spec":{"a":1}}}"#, &paths).unwrap();
    let request = Request {
        operation: Operation::Create,
        group: "",
        version: "v1",
        kind: "Thing",
        subresource: "",
        name: "x",
        namespace: "n",
        namespace_labels: None,
        user: "jane",
        groups: &[],
        dry_run: false,
        object: found.document(&mount),
        old_object: None,
    };
    let deadline = Instant::now() + Duration::from_secs(5);
    set.evaluate(&request, &Context { lookup, deadline, is_background: false }).await
}

/// The reason why the only policy of a set could not judge.
async fn failure_of(bytes: &[u8]) -> FailureReason {
    let engine = engine();
    let policy = load(&engine, bytes).await.unwrap();
    let set = PolicySet::new(vec![binding("hostile", policy)], vec![String::new()]);
    let mut verdict = evaluate(&set, Arc::new(NoLookup)).await;
    assert!(verdict.denies(), "a failure of a closed group is a refusal");
    let failure = verdict.failures.pop().unwrap();
    assert_eq!(failure.policy, "hostile");
    failure.reason
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_harmless_guest_passes() {
    let engine = engine();
    let policy = load(&engine, &validating("")).await.unwrap();
    let set = PolicySet::new(vec![binding("harmless", policy)], Vec::new());
    let verdict = evaluate(&set, Arc::new(NoLookup)).await;
    assert!(verdict.failures.is_empty() && !verdict.denies(), "{verdict:?}");
    assert_eq!(verdict.evaluations.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endless_loop_ends_at_its_time_limit() {
    let started = Instant::now();
    let engine = engine();
    let policy = load(&engine, &validating(LOOP)).await.unwrap();
    let set = PolicySet::new(vec![binding("loop", policy)], Vec::new());
    let loaded = started.elapsed();
    let before = processor_time();
    let verdict = evaluate(&set, Arc::new(NoLookup)).await;
    let taken = processor_time() - before;
    let reason = &verdict.failures.first().unwrap().reason;
    assert_eq!(reason.category(), "deadline", "{reason}");
    assert!(started.elapsed() - loaded >= Limits::default().time);
    // Of the whole process, which does little else: neighbours do not count.
    assert!(taken < Limits::default().time * 5, "{taken:?}");
    assert!(!verdict.denies(), "a group that is not closed fails open");
}

fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let [seconds, nanoseconds] = [time.tv_sec, time.tv_nsec].map(u64::try_from).map(Result::unwrap);
    Duration::from_secs(seconds) + Duration::from_nanos(nanoseconds)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_memory_bomb_is_stopped() {
    let reason = failure_of(&validating(GROW)).await;
    assert_eq!(reason, FailureReason::Memory(Limits::default().memory));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deep_recursion_is_stopped() {
    let reason = failure_of(&validating("(drop (call $recurse (i64.const 0)))")).await;
    assert_eq!(reason, FailureReason::Stack);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_is_an_answer() {
    let reason = failure_of(&validating("unreachable")).await;
    assert_eq!(reason.category(), "trap", "{reason}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_of_ten_mebibytes_is_not_read() {
    let reply = "
        (drop (memory.grow (i32.const 200)))
        (i32.store8 (i32.const 2000) (i32.const 1))
        (i32.store (i32.const 2004) (i32.const 65536))
        (i32.store (i32.const 2008) (i32.const 10485760))";
    let reason = failure_of(&validating(reply)).await;
    assert_eq!(reason, FailureReason::ReplyTooLarge(Limits::default().reply));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_that_names_one_text_a_million_times_is_not_read() {
    // A million findings whose texts all are the same 64 KiB.
    let reply = "
        (drop (memory.grow (i32.const 200)))
        (i32.store (i32.const 2004) (i32.const 65536))
        (i32.store (i32.const 2008) (i32.const 200000))";
    let reason = failure_of(&validating(reply)).await;
    assert_eq!(reason, FailureReason::ReplyTooLarge(Limits::default().reply));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_that_points_outside_the_memory_breaks_the_contract() {
    let reply = "(i32.store (i32.const 2004) (i32.const 0x7fffff00))
        (i32.store (i32.const 2008) (i32.const 1000))";
    let reason = failure_of(&validating(reply)).await;
    assert_eq!(reason.category(), "bad_reply", "{reason}");
}

/// The message of a finding, and the reason of a policy that is inconclusive, of 100,000 bytes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_of_a_policy_is_cut_before_anybody_sees_it() {
    let finding = "
        (drop (memory.grow (i32.const 4)))
        (memory.fill (i32.const 131072) (i32.const 97) (i32.const 100000))
        (i32.store (i32.const 2004) (i32.const 3000))
        (i32.store (i32.const 2008) (i32.const 1))
        (i32.store (i32.const 3000) (i32.const 140))
        (i32.store (i32.const 3004) (i32.const 2))
        (i32.store (i32.const 3020) (i32.const 131072))
        (i32.store (i32.const 3024) (i32.const 100000))";
    let engine = engine();
    let policy = load(&engine, &validating(finding)).await.unwrap();
    let set = PolicySet::new(vec![binding("talkative", policy)], Vec::new());
    let verdict = evaluate(&set, Arc::new(NoLookup)).await;
    let said = &verdict.findings.first().unwrap().message;
    assert!(said.len() < MAX_TEXT_BYTES + 30 && said.ends_with("… (100000 bytes)"), "{said}");
    let inconclusive = "
        (drop (memory.grow (i32.const 4)))
        (memory.fill (i32.const 131072) (i32.const 97) (i32.const 100000))
        (i32.store (i32.const 2000) (i32.const 1))
        (i32.store (i32.const 2004) (i32.const 131072))
        (i32.store (i32.const 2008) (i32.const 100000))";
    let reason = failure_of(&validating(inconclusive)).await;
    assert_eq!(reason.category(), "inconclusive");
    assert!(reason.to_string().len() < MAX_TEXT_BYTES + 80, "{reason}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_undeclared_look_up_ends_the_evaluation() {
    let reason = failure_of(&validating(FIND)).await;
    assert_eq!(reason, FailureReason::UndeclaredLookup("undeclared".to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_function_that_never_ends_is_not_loaded() {
    let error = load(&engine(), &guest(&[("START", LOOP)])).await.unwrap_err();
    assert!(matches!(error, LoadError::Describe(FailureReason::Deadline(_))), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_module_that_cannot_say_what_it_is_is_not_loaded() {
    let error = load(&engine(), &guest(&[("DESCRIBE", "unreachable")])).await.unwrap_err();
    assert!(matches!(error, LoadError::Describe(FailureReason::Trap(_))), "{error:?}");
}

/// A guest that says this of its settings.
fn with_schema(schema: &str) -> Vec<u8> {
    let escaped: String = schema.bytes().map(|byte| format!("\\{byte:02x}")).collect();
    let data = format!("(data $schema \"{escaped}\")");
    let length = schema.len();
    let describe = format!(
        "(drop (memory.grow (i32.const {})))
        (memory.init $schema (i32.const 131072) (i32.const 0) (i32.const {length}))
        (i32.store (i32.const 1048) (i32.const 131072))
        (i32.store (i32.const 1052) (i32.const {length}))",
        length / (64 << 10) + 1
    );
    guest(&[("DATA", &data), ("DESCRIBE", &describe)])
}

/// A schema of definitions, each made of the name of the one before.
fn definitions(count: usize, one: impl Fn(&str) -> String) -> String {
    let mut text = r#"{"$defs":{"d0":{}"#.to_owned();
    for number in 1..=count {
        let before = one(&format!("#/$defs/d{}", number - 1));
        text.push_str(&format!(",\"d{number}\":{before}"));
    }
    format!("{text}}},\"$ref\":\"#/$defs/d{count}\"}}")
}

async fn said_of(bytes: &[u8]) -> String {
    let error = load(&engine(), bytes).await.unwrap_err();
    assert!(matches!(error, LoadError::Metadata(_)), "{error:?}");
    let mut said = String::new();
    let mut cause: Option<&dyn std::error::Error> = Some(&error);
    while let Some(error) = cause {
        said.push_str(&format!("{error}: "));
        cause = error.source();
    }
    said
}

/// Each ended the process, or a thread of it without limit, when its settings were checked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_whose_references_are_deep_or_double_is_not_loaded() {
    let chain = |count| definitions(count, |before| format!(r#"{{"$ref":"{before}"}}"#));
    let long = said_of(&with_schema(&chain(20_000))).await;
    assert!(long.contains("32768 are possible"), "{long}");
    let deep = said_of(&with_schema(&chain(900))).await;
    assert!(deep.contains("deeper than 64 levels"), "{deep}");
    let doubling = definitions(60, |before| {
        format!(r#"{{"allOf":[{{"$ref":"{before}"}},{{"$ref":"{before}"}}]}}"#)
    });
    let doubling = said_of(&with_schema(&doubling)).await;
    assert!(doubling.contains("levels") || doubling.contains("values"), "{doubling}");
    let itself = said_of(&with_schema(r##"{"properties":{"a":{"$ref":"#"}}}"##)).await;
    assert!(itself.contains("refers to itself"), "{itself}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_are_checked_by_the_schema_that_the_module_brings() {
    let schema = definitions(3, |before| format!(r#"{{"allOf":[{{"$ref":"{before}"}}]}}"#));
    let schema = schema.replace(r#""d0":{}"#, r#""d0":{"type":"object"}"#);
    let policy = load(&engine(), &with_schema(&schema)).await.unwrap();
    assert_eq!(policy.check_settings(&serde_json::json!({})), [""; 0]);
    assert_eq!(policy.check_settings(&serde_json::json!(1)).len(), 1);
}

/// Putting it in force overflowed the stack, at each start of the webhook.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pointer_of_200_000_segments_is_not_loaded() {
    let describe = "(drop (memory.grow (i32.const 4)))
        (memory.fill (i32.const 131072) (i32.const 47) (i32.const 200000))
        (i32.store (i32.const 1300) (i32.const 131072))
        (i32.store (i32.const 1304) (i32.const 200000))";
    let said = said_of(&guest(&[("DESCRIBE", describe)])).await;
    assert!(said.contains("may have 256 bytes; this one has 200000"), "{said}");
    assert!(said.len() < 300, "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_of_another_world_is_not_loaded() {
    let engine = engine();
    let empty = load(&engine, &wat::parse_str("(component)").unwrap()).await.unwrap_err();
    assert!(matches!(empty, LoadError::World(_)), "{empty:?}");
    let wasi = r#"(component (import "wasi:clocks/monotonic-clock@0.2.0" (instance)))"#;
    let wasi = load(&engine, &wat::parse_str(wasi).unwrap()).await.unwrap_err();
    assert!(
        matches!(&wasi, LoadError::Import(name) if name.starts_with("wasi:clocks")),
        "{wasi:?}"
    );
    let module = load(&engine, &wat::parse_str("(module)").unwrap()).await.unwrap_err();
    assert!(matches!(module, LoadError::Compile(_)), "{module:?}");
    let noise = load(&engine, b"not wasm at all").await.unwrap_err();
    assert!(matches!(noise, LoadError::Compile(_)), "{noise:?}");
}

/// A component beyond its share would take places in the pool from its neighbours, and of two
/// memories each could grow to the limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_beyond_its_share_of_the_pool_is_not_loaded() {
    let engine = engine();
    for (part, count) in [("(memory 1)", 2), ("(table 1 funcref)", 4), ("", 65)] {
        let instances = "(core instance (instantiate $m))".repeat(count);
        let text = format!("(component (core module $m {part}) {instances})");
        let refused = load(&engine, &wat::parse_str(text).unwrap()).await.unwrap_err();
        assert!(matches!(refused, LoadError::Compile(_)), "{part}: {refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_bytes_than_pinned_are_not_loaded() {
    let pinned = Some(Digest::of(b"something else"));
    let error = Policy::load(&engine(), &validating(""), pinned, None).await.unwrap_err();
    assert!(matches!(error, LoadError::Digest { .. }), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_neighbour_is_judged_while_another_loops() {
    let engine = engine();
    let looping = load(&engine, &validating(LOOP)).await.unwrap();
    let harmless = load(&engine, &validating("")).await.unwrap();
    let mut slow = binding("loop", looping);
    slow.limits.time = Duration::from_secs(1);
    let slow = PolicySet::new(vec![slow], Vec::new());
    let quick = PolicySet::new(vec![binding("harmless", harmless)], Vec::new());
    // As many loops as there are threads: without yielding, no other task would get one.
    let loops = async {
        let one = || evaluate(&slow, Arc::new(NoLookup));
        tokio::join!(one(), one(), one())
    };
    let neighbour = async {
        let mut passed = 0;
        for _ in 0..50 {
            let verdict = evaluate(&quick, Arc::new(NoLookup)).await;
            passed += usize::from(verdict.failures.is_empty());
        }
        passed
    };
    let ((one, two, three), passed) = tokio::join!(Box::pin(loops), neighbour);
    assert_eq!(passed, 50);
    for verdict in [one, two, three] {
        assert_eq!(verdict.failures.first().unwrap().reason.category(), "deadline");
    }
}

/// Ends by a trap if any page is not as it was at first, then leaves something in every page: in
/// the module's own data, in memory that it has from the start, and in memory that it grows.
fn spying() -> Vec<u8> {
    const PAGES: usize = 22;
    let mut code = "(if (i32.ne (i32.load8_u (i32.const 110)) (i32.const 49)) (then unreachable))
        (i32.store8 (i32.const 110) (i32.const 50))
        (if (i32.ne (memory.grow (i32.const 20)) (i32.const 2)) (then unreachable))"
        .to_owned();
    for address in (64 << 10..PAGES * (64 << 10)).step_by(4096) {
        code.push_str(&format!(
            "(if (i32.load (i32.const {address})) (then unreachable))
            (i32.store (i32.const {address}) (i32.const 1))"
        ));
    }
    validating(&code)
}

/// Of three evaluations each. What a gate has no time for is asked for by `OPENSDN_ISOLATION_ROUNDS`:
/// a million evaluations are 333334 rounds.
fn isolation_rounds() -> usize {
    let asked = std::env::var("OPENSDN_ISOLATION_ROUNDS").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(1_000)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_one_evaluation_is_visible_in_the_next() {
    // Fewer places than policies, so that they change hands.
    let engine = Engine::start(2).unwrap();
    let mut sets = Vec::new();
    for number in 0..3 {
        let mut bytes = spying();
        // An empty custom section makes it another module.
        bytes.extend([0, 2, 1, b'0' + number]);
        let policy = load(&engine, &bytes).await.unwrap();
        sets.push(PolicySet::new(vec![binding("spy", policy)], Vec::new()));
    }
    for _ in 0..isolation_rounds() {
        let one = |number: usize| evaluate(&sets[number], Arc::new(NoLookup));
        let (first, second, third) = tokio::join!(one(0), one(1), one(2));
        for verdict in [first, second, third] {
            assert!(verdict.failures.is_empty(), "{:?}", verdict.failures);
        }
    }
}

/// A cluster that never answers.
struct Silent;

impl Lookup for Silent {
    fn get<'a>(&'a self, _: &'a Index, _: &'a str, _: &'a str) -> Answer<'a, Option<FoundObject>> {
        Box::pin(std::future::pending())
    }

    fn find<'a>(&'a self, _: &'a Index, _: &'a str, _: usize) -> Answer<'a, Vec<FoundObject>> {
        Box::pin(std::future::pending())
    }
}

/// One index, named "undeclared", of the kind Thing by the key "".
const DECLARED: &str = "
    (i32.store (i32.const 1032) (i32.const 3000))
    (i32.store (i32.const 1036) (i32.const 1))
    (i32.store (i32.const 3000) (i32.const 160))
    (i32.store (i32.const 3004) (i32.const 10))
    (i32.store (i32.const 3016) (i32.const 120))
    (i32.store (i32.const 3020) (i32.const 5))";

/// A cluster with a number of objects, each of so many bytes.
struct Crowd {
    objects: usize,
    bytes: usize,
    copied: AtomicUsize,
}

impl Lookup for Crowd {
    fn get<'a>(&'a self, _: &'a Index, _: &'a str, _: &'a str) -> Answer<'a, Option<FoundObject>> {
        Box::pin(async { Ok(None) })
    }

    fn find<'a>(&'a self, _: &'a Index, _: &'a str, most: usize) -> Answer<'a, Vec<FoundObject>> {
        let found = up_to_the_limit((0..self.objects.min(most)).map(|number| {
            self.copied.fetch_add(1, Ordering::Relaxed);
            let (namespace, uid) = (String::new(), String::new());
            let parts = vec![Some("x".repeat(self.bytes))];
            FoundObject { namespace, name: number.to_string(), uid, parts }
        }));
        Box::pin(async move { Ok(found) })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn look_ups_that_find_more_than_an_evaluation_may_have_end_it_before_they_are_copied() {
    let engine = engine();
    let judge = async |validate: &str, objects: usize, bytes: usize| {
        let guest = guest(&[("DESCRIBE", DECLARED), ("VALIDATE", validate)]);
        let policy = load(&engine, &guest).await.unwrap();
        let mut binding = binding("curious", policy);
        // What is measured is not time.
        binding.limits.time = Duration::from_secs(10);
        let set = PolicySet::new(vec![binding], Vec::new());
        let crowd = Arc::new(Crowd { objects, bytes, copied: AtomicUsize::new(0) });
        let verdict = evaluate(&set, Arc::clone(&crowd) as Arc<dyn Lookup>).await;
        let reason = verdict.failures.into_iter().next().map(|failure| failure.reason);
        (reason, crowd.copied.load(Ordering::Relaxed))
    };
    let too_large = Some(FailureReason::LookupTooLarge(MAX_LOOKUP_BYTES));
    let (reason, copied) = judge(FIND, 1_000_000, 64 << 10).await;
    assert_eq!(reason, too_large);
    assert!(copied <= MAX_LOOKUP_BYTES / (64 << 10) + 1, "{copied} objects were copied");
    // What an evaluation looks up one after the other counts together.
    let twice = format!("(drop (memory.grow (i32.const 200))) {FIND} {FIND}");
    let (reason, _) = judge(&twice, 1, MAX_LOOKUP_BYTES / 2).await;
    assert_eq!(reason, too_large);
    let (reason, copied) = judge(FIND, 100, 1_000).await;
    assert_eq!((reason, copied), (None, 100));
    // Of the first few, nothing that others have made ends it: neither how many they are nor how large.
    let first = |count: usize| {
        format!("(drop (memory.grow (i32.const 200))) {FIND_FIRST} {}", found(count))
    };
    assert_eq!(judge(&first(32), 1_000_000, 64 << 10).await, (None, 32));
    assert_eq!(judge(&first(3), 3, 64 << 10).await, (None, 3));
    assert_eq!(judge(&first(3), 1_000_000, MAX_LOOKUP_BYTES / 4).await.0, None);
    assert_eq!(judge(&first(0), 1_000_000, MAX_LOOKUP_BYTES + 1).await.0, None);
    // What they have brought counts for what comes after.
    let then = format!("{} {FIND}", first(1));
    assert_eq!(judge(&then, 1, MAX_LOOKUP_BYTES / 2).await.0, too_large);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_up_that_never_answers_ends_at_the_time_limit() {
    let engine = engine();
    let bytes = asking();
    let policy = load(&engine, &bytes).await.unwrap();
    assert_eq!(policy.metadata().indexes.len(), 1);
    let set = PolicySet::new(vec![binding("waiting", policy)], Vec::new());
    let verdict = evaluate(&set, Arc::new(Silent)).await;
    assert_eq!(verdict.failures.first().unwrap().reason.category(), "deadline");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compiled_code_is_taken_from_the_cache_only_if_it_is_ours() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path().join("cache")).unwrap();
    let engine = engine();
    let bytes = validating("");
    let load = async || Policy::load(&engine, &bytes, None, Some(&cache)).await.unwrap();
    assert!(!load().await.is_from_cache());
    assert!(load().await.is_from_cache());

    let entry = std::fs::read_dir(cache.folder()).unwrap().next().unwrap().unwrap().path();
    let mut code = std::fs::read(&entry).unwrap();
    let last = code.len() - 1;
    code[last] ^= 1;
    std::fs::write(&entry, code).unwrap();
    assert!(!load().await.is_from_cache(), "a swapped byte is noticed");
    assert!(load().await.is_from_cache(), "and mended");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_may_have_put_into_the_cache_while_they_could_is_not_taken() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path().join("cache")).unwrap();
    let engine = engine();
    let (first, second) = (validating(""), validating("(nop)"));
    let load = async |bytes: &[u8]| {
        Policy::load(&engine, bytes, None, Some(&cache)).await.unwrap().is_from_cache()
    };
    let entries = || -> Vec<_> {
        std::fs::read_dir(cache.folder()).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    assert!(!load(&first).await);
    let of_first = entries().pop().unwrap();
    let writable = std::fs::Permissions::from_mode(0o622);
    std::fs::set_permissions(&of_first, writable).unwrap();
    assert!(!load(&first).await, "others may write to it");
    assert!(load(&first).await, "another is in its place");

    assert!(!load(&second).await);
    let of_second = entries().into_iter().find(|path| *path != of_first).unwrap();
    std::fs::copy(&of_first, &of_second).unwrap();
    assert!(!load(&second).await, "it is the code of another module");

    let aside = folder.path().join("aside");
    std::fs::rename(&of_second, &aside).unwrap();
    std::os::unix::fs::symlink(&aside, &of_second).unwrap();
    assert!(!load(&second).await, "it is a link");
    assert!(load(&second).await);

    std::fs::remove_file(&of_second).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&of_second).status().unwrap();
    assert!(made.success());
    assert!(!load(&second).await, "a pipe is not waited for");
    assert!(load(&second).await);
}

#[test]
fn a_cache_is_made_below_a_folder_and_for_its_user_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::below(&folder.path().join("new")).unwrap();
    assert_eq!(cache.folder(), folder.path().join("new/compiled"));
    let mode = std::fs::metadata(cache.folder()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn a_folder_that_others_write_to_is_no_cache() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let error = Cache::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("chmod 700"), "{error}");
}

#[test]
fn a_full_disk_is_known_from_other_errors_of_the_cache() {
    let error = |kind: ErrorKind| CacheError::Write("code".into(), kind.into());
    assert!(error(ErrorKind::StorageFull).is_full() && error(ErrorKind::QuotaExceeded).is_full());
    assert!(!error(ErrorKind::PermissionDenied).is_full());
    assert!(!CacheError::Shared("cache".into()).is_full());
}

/// A policy that looks something up by the index "undeclared", which it declares: of the kind Thing
/// by the key "".
fn asking() -> Vec<u8> {
    guest(&[("DESCRIBE", DECLARED), ("VALIDATE", FIND)])
}

/// A cluster that never answers, with a permit for each question.
struct Asked(tokio::sync::Semaphore);

impl Lookup for Asked {
    fn get<'a>(&'a self, _: &'a Index, _: &'a str, _: &'a str) -> Answer<'a, Option<FoundObject>> {
        Box::pin(std::future::pending())
    }

    fn find<'a>(&'a self, _: &'a Index, _: &'a str, _: usize) -> Answer<'a, Vec<FoundObject>> {
        self.0.add_permits(1);
        Box::pin(std::future::pending())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policies_that_take_all_slots_for_open_groups_leave_some_for_the_closed_ones() {
    let engine = engine();
    let mut slow = binding("slow", load(&engine, &asking()).await.unwrap());
    slow.limits.time = Duration::from_secs(60);
    let busy = Arc::new(PolicySet::new(vec![slow], Vec::new()));
    let harmless = load(&engine, &validating("")).await.unwrap();
    let ours = PolicySet::new(vec![binding("harmless", harmless)], vec![String::new()]);
    let asked = Arc::new(Asked(tokio::sync::Semaphore::new(0)));
    // More than the engine's eight slots.
    let crowd: Vec<_> = (0..16)
        .map(|_| (Arc::clone(&busy), Arc::clone(&asked)))
        .map(|(busy, asked)| tokio::spawn(async move { evaluate(&busy, asked).await }))
        .collect();
    let _six_are_running = asked.0.acquire_many(6).await.unwrap();
    let verdict = evaluate(&ours, Arc::new(NoLookup)).await;
    assert_eq!(verdict.failures, [], "a closed group has slots of its own");
    for one in crowd {
        one.abort();
    }
}
