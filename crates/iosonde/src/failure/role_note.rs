//! The note with the roles that an administrator can apply for missing rights.

/// Returns a note with the manifest of roles, which begins a new line.
pub(crate) fn role_note(role: &str) -> String {
    let role = role.trim_end();
    format!("\nnote: these roles have all rights that are needed:\n{role}")
}

#[cfg(test)]
mod tests {
    use crate::failure::CommandError;
    use iosonde_result::run_error::{ClusterObstacle, RunError};

    fn missing_rights() -> CommandError {
        let obstacle = ClusterObstacle::MissingRights {
            rights: vec!["create jobs".to_owned()],
            role: "kind: Role\nrules: []\n".to_owned(),
            is_bound_to_namespace: true,
        };
        CommandError::from(RunError::from(obstacle))
    }

    #[test]
    fn error_text_ends_with_the_role_for_missing_rights() {
        assert_eq!(
            missing_rights().text(false),
            "error: this user lacks rights that a run needs: create jobs\n\
             help: have an administrator grant these rights\n\
             note: these roles have all rights that are needed:\n\
             kind: Role\n\
             rules: []"
        );
    }

    #[test]
    fn warning_ends_with_the_role_for_missing_rights() {
        let text = missing_rights().text(false);
        let rest = text.strip_prefix("error").unwrap();
        assert_eq!(missing_rights().warning(), format!("warning{rest}"));
    }

    #[test]
    fn stored_text_of_missing_rights_names_no_role() {
        let text = missing_rights().stored_text();
        assert!(!text.contains("role"), "{text}");
        assert!(text.ends_with("grant these rights"), "{text}");
    }
}
