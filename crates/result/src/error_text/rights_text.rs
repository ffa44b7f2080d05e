//! Actions to take if a user lacks rights in a cluster.

/// Returns the action for rights of a run. `is_bound_to_namespace`: another namespace is no remedy.
pub(super) fn missing_rights_remedy(is_bound_to_namespace: bool) -> &'static str {
    match is_bound_to_namespace {
        false => "have an administrator grant these rights, or choose another namespace with -n",
        true => "have an administrator grant these rights",
    }
}

/// Returns the action for rights of `--clean`.
pub(super) fn clean_up_remedy(suggests_namespace: bool) -> &'static str {
    match suggests_namespace {
        true => "have an administrator grant these rights, or name one namespace with -n",
        false => "have an administrator grant these rights",
    }
}
