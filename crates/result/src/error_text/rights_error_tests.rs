//! Words of the errors of rights in a cluster. They hold without the role, which a note prints.

use crate::run_error::{ClusterObstacle, RunError};

fn check(obstacle: ClusterObstacle, words: &str, remedy: &str) {
    let error = RunError::from(obstacle);
    assert_eq!(error.to_string(), words);
    assert_eq!(error.remedy(), remedy);
    assert_eq!(error.role_to_apply(), Some("kind: Role"));
    let json = serde_json::to_string(&error).unwrap();
    assert_eq!(serde_json::from_str::<RunError>(&json).unwrap(), error);
}

fn role() -> String {
    "kind: Role".to_owned()
}

fn rights(all: &[&str]) -> Vec<String> {
    all.iter().map(|right| (*right).to_owned()).collect()
}

#[test]
fn namespace_without_rights_keeps_its_words() {
    check(
        ClusterObstacle::NamespaceForbidden {
            namespace: "lab".to_owned(),
            rights: rights(&["create namespaces", "delete namespaces"]),
            role: role(),
        },
        "the namespace lab does not exist, and this user lacks rights to make and remove it: \
         create namespaces, delete namespaces",
        "choose one that exists with -n, or have an administrator grant these rights",
    );
}

#[test]
fn missing_rights_suggest_another_namespace_only_to_a_free_run() {
    let missing = |is_bound_to_namespace: bool| ClusterObstacle::MissingRights {
        rights: rights(&["create jobs", "get pods/log"]),
        role: role(),
        is_bound_to_namespace,
    };
    let words = "this user lacks rights that a run needs: create jobs, get pods/log";
    check(
        missing(false),
        words,
        "have an administrator grant these rights, or choose another namespace with -n",
    );
    check(
        missing(true),
        words,
        "have an administrator grant these rights",
    );
}

#[test]
fn missing_rights_to_clean_up_keep_their_words() {
    let forbidden = |suggests_namespace: bool| ClusterObstacle::CleanUpForbidden {
        rights: rights(&["delete jobs"]),
        role: role(),
        suggests_namespace,
    };
    let words = "this user lacks rights that --clean needs: delete jobs";
    check(
        forbidden(false),
        words,
        "have an administrator grant these rights",
    );
    check(
        forbidden(true),
        words,
        "have an administrator grant these rights, or name one namespace with -n",
    );
}

#[test]
fn run_that_may_be_in_a_hidden_namespace_is_looked_for_by_its_name() {
    let error = RunError::from(ClusterObstacle::NoSuchRun {
        run: "c3".to_owned(),
        known: Vec::new(),
        hidden_outside: Some("lab".to_owned()),
    });
    assert_eq!(error.to_string(), "no run c3 in the namespace lab");
    assert_eq!(error.remedy(), "name its namespace with -n");
    let json = serde_json::to_string(&error).unwrap();
    assert_eq!(serde_json::from_str::<RunError>(&json).unwrap(), error);
}
