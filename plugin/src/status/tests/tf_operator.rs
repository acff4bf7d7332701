//! What is said of upstream's operator.

use super::*;

fn deployment(replicas: i64) -> Read<Value> {
    Read::Known(
        json!({"metadata": {"name": "tf-operator", "namespace": "tf"}, "spec": {"replicas": replicas},
        "status": {"readyReplicas": replicas}}),
    )
}

/// What tf-operator has made, with that operator of ours.
fn beside(replicas: i64, ours: Read<Value>) -> World {
    let mut world = world(vec![up("Redis")]);
    let Read::Known(sets) = &mut world.stateful_sets else { panic!("they are known") };
    sets[0]["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Redis", "name": "redis1"}]);
    world.tf_operators = deployment(replicas).known().cloned().into_iter().collect();
    world.operator = ours;
    world
}

fn said_of_it(world: &World) -> Option<(Option<Word>, String, bool)> {
    let report = said(world);
    let part = report.around.into_iter().find(|part| part.name == "tf-operator")?;
    Some((part.state, part.message, part.degrades))
}

#[test]
fn two_operators_are_a_cause_and_so_is_none() {
    let ours = || deployment(2);
    let (_, both, degrades) = said_of_it(&beside(1, ours())).unwrap();
    assert!(degrades && both.contains("tf/tf-operator runs beside our operator"), "{both}");
    let report = said(&beside(1, ours()));
    let end = "kubectl scale deployment tf-operator -n tf --replicas=0";
    assert!(report.causes.iter().any(|cause| cause.look == end), "{:?}", report.causes);
    // One that is away in another namespace hides none that runs.
    let mut of_two = beside(0, ours());
    let mut running = deployment(1).known().cloned().unwrap();
    running["metadata"]["namespace"] = json!("tf-lab");
    of_two.tf_operators.push(running);
    let (_, both, degrades) = said_of_it(&of_two).unwrap();
    assert!(degrades && both.contains("tf-lab/tf-operator runs beside"), "{both}");

    let (state, none, degrades) = said_of_it(&beside(0, Read::Absent)).unwrap();
    assert!(
        degrades && state == Some(Word::Inactive) && none.contains("install --adopt"),
        "{none}"
    );
}

#[test]
fn alone_it_is_as_it_should_be_and_away_it_is_not_said() {
    let alone = said_of_it(&beside(1, Read::Absent)).unwrap();
    assert_eq!(alone, (Some(Word::Active), String::new(), false));
    assert_eq!(said_of_it(&beside(0, deployment(2))), None);
    let unknown = said_of_it(&beside(1, Read::Unknown("forbidden".to_owned()))).unwrap();
    assert!(!unknown.2, "whether there are two is not known");
    assert_eq!(said_of_it(&world(vec![up("Redis")])), None);
}
