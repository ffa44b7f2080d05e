//! How a pool stores its objects, for another pool that does the same. Pure.

use serde_json::{Value, json};

/// Copies or erasure code of a pool, its CRUSH rule and its number of placement groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolLayout {
    /// Number of copies. Ignored with an erasure code.
    size: u64,
    pgs: u64,
    /// Name of the CRUSH rule.
    rule: String,
    /// Profile of the erasure code. `None`: copies.
    pub(crate) profile: Option<String>,
}

impl PoolLayout {
    /// Layout of the pool of this name in the answer to `osd pool ls detail`. `rule` is the name
    /// of its CRUSH rule.
    pub(crate) fn find(pools: &Value, name: &str, rule: String) -> Option<PoolLayout> {
        let pools = pools.as_array()?;
        let found = pools.iter().find(|pool| pool["pool_name"] == name)?;
        let profile = found["erasure_code_profile"].as_str();
        let is_erasure = found["type"].as_u64() == Some(3);
        Some(PoolLayout {
            size: found["size"].as_u64()?,
            pgs: found["pg_num"].as_u64()?,
            rule,
            profile: profile.filter(|_| is_erasure).map(str::to_owned),
        })
    }

    /// Command that creates a pool with this layout.
    pub(crate) fn create_command(&self, pool: &str) -> Value {
        let mut command = json!({
            "prefix": "osd pool create",
            "pool": pool,
            "pg_num": self.pgs,
            "pgp_num": self.pgs,
            "rule": self.rule,
        });
        match &self.profile {
            Some(profile) => {
                command["pool_type"] = json!("erasure");
                command["erasure_code_profile"] = json!(profile);
            }
            None => {
                command["pool_type"] = json!("replicated");
                command["size"] = json!(self.size);
            }
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pool_layout_keeps_copies_or_code_rule_and_pgs() {
        // As Ceph 16 answers `osd pool ls detail`, without fields that are not read.
        let pools = json!([
            {"pool_id": 1, "pool_name": "cold", "type": 1, "size": 2, "pg_num": 8,
             "crush_rule": 0, "erasure_code_profile": "", "read_tier": 2},
            {"pool_id": 3, "pool_name": "coded", "type": 3, "size": 3, "pg_num": 16,
             "crush_rule": 1, "erasure_code_profile": "k2m1", "read_tier": -1}
        ]);
        let command = |pool: &str| {
            let layout = PoolLayout::find(&pools, pool, "fast".to_owned()).unwrap();
            layout.create_command("new")
        };
        let cold = command("cold");
        assert_eq!((&cold["pg_num"], &cold["size"]), (&json!(8), &json!(2)));
        assert_eq!(cold["pool_type"], "replicated");
        assert_eq!(cold["rule"], "fast");
        assert_eq!(cold["erasure_code_profile"], Value::Null);
        let coded = command("coded");
        assert_eq!(coded["pool_type"], "erasure");
        assert_eq!(coded["erasure_code_profile"], "k2m1");
        assert_eq!(coded["size"], Value::Null);
        assert_eq!(PoolLayout::find(&pools, "none", String::new()), None);
    }
}
