//! Checks the quotas of CPU, memory and ephemeral storage.

use super::Facts;
use crate::manifest::{Quantity, quantity_bytes};
use crate::options::ClusterOptions;
use crate::refusal::refuse;
use iosonde_result::run_error::{ClusterObstacle, QuotaShortage, RunError};
use k8s_openapi::api::core::v1::{LimitRangeItem, ResourceQuota};
use std::collections::BTreeMap;

/// Resources of containers that quotas count.
const COMPUTE: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

impl Facts {
    /// Fails if a quota has no room for the pods, or counts an amount that they do not state.
    pub(super) fn judge_compute_quotas(
        &self,
        options: &ClusterOptions,
        pods: u32,
    ) -> Result<(), RunError> {
        // Quotas with scopes count only some pods, and a patch may state amounts.
        let is_general = |quota: &&ResourceQuota| {
            let spec = quota.spec.as_ref();
            spec.is_some_and(|spec| spec.scopes.is_none() && spec.scope_selector.is_none())
        };
        if options.pod_patch.is_some() {
            return Ok(());
        }
        for quota in self.quotas.iter().flatten().filter(is_general) {
            for resource in counted(quota) {
                let Some((name, is_limit)) = compute_resource(resource) else {
                    continue;
                };
                let quota_name = quota.metadata.name.clone().unwrap_or_default();
                let Some(each_milli) = self.stated_milli(options, name, is_limit) else {
                    if self.limits.is_none() {
                        // A limit range that this user may not read may state it.
                        continue;
                    }
                    return refuse(ClusterObstacle::QuotaNeedsAmount {
                        quota: quota_name,
                        resource: resource.clone(),
                    });
                };
                let needed_milli = each_milli.saturating_mul(u64::from(pods));
                if let Some(left_milli) = left_milli(quota, resource)
                    && left_milli < needed_milli
                {
                    return refuse(ClusterObstacle::QuotaExceeded {
                        quota: quota_name,
                        resource: resource.clone(),
                        shortage: QuotaShortage::Amount {
                            needed_milli,
                            left_milli,
                        },
                    });
                }
            }
        }
        Ok(())
    }

    /// Returns the amount of a pod: its own, or the default of a limit range. `None`: it has none.
    fn stated_milli(&self, options: &ClusterOptions, name: &str, is_limit: bool) -> Option<u64> {
        let own = &options.pod;
        let limit = own.limits.get(name);
        let stated = match is_limit {
            true => limit,
            // A limit without a request is also the request.
            false => own.requests.get(name).or(limit),
        };
        // The manifest states the space of an emptyDir, and watchers state theirs.
        if stated.is_none() && name == "ephemeral-storage" && !is_limit {
            return Some(0);
        }
        stated
            .cloned()
            .or_else(|| self.default_amount(name, is_limit))
            .and_then(|amount| quantity_milli(&amount))
    }

    fn default_amount(&self, name: &str, is_limit: bool) -> Option<Quantity> {
        let ranges = self.limits.iter().flatten();
        let items = ranges.flat_map(|range| range.spec.iter().flat_map(|spec| &spec.limits));
        let mut items = items.filter(|item| item.type_ == "Container");
        let of =
            |amounts: &Option<BTreeMap<String, Quantity>>| amounts.as_ref()?.get(name).cloned();
        items.find_map(|item: &LimitRangeItem| match is_limit {
            true => of(&item.default),
            false => of(&item.default_request).or_else(|| of(&item.default)),
        })
    }
}

/// Returns the resources that a quota counts.
fn counted(quota: &ResourceQuota) -> impl Iterator<Item = &String> {
    let hard = quota
        .status
        .as_ref()
        .and_then(|status| status.hard.as_ref());
    hard.into_iter().flat_map(BTreeMap::keys)
}

/// Returns the resource of a container by its name in a quota, and whether its limit is counted.
fn compute_resource(resource: &str) -> Option<(&str, bool)> {
    let (name, is_limit) = match resource.strip_prefix("limits.") {
        Some(name) => (name, true),
        None => (
            resource.strip_prefix("requests.").unwrap_or(resource),
            false,
        ),
    };
    COMPUTE.contains(&name).then_some((name, is_limit))
}

fn left_milli(quota: &ResourceQuota, resource: &str) -> Option<u64> {
    let status = quota.status.as_ref()?;
    let hard = quantity_milli(status.hard.as_ref()?.get(resource)?)?;
    let used = status.used.as_ref().and_then(|used| used.get(resource));
    let used = used.and_then(quantity_milli).unwrap_or(0);
    Some(hard.saturating_sub(used))
}

/// Parses a quantity in thousandths, the unit of CPUs.
fn quantity_milli(quantity: &Quantity) -> Option<u64> {
    match quantity.0.trim().strip_suffix('m') {
        Some(milli) => milli.parse().ok(),
        None => {
            let text = quantity.0.trim();
            // Fractions of a CPU.
            let fraction = text.parse::<f64>().ok().filter(|_| text.contains('.'));
            match fraction {
                Some(number) => Some((number * 1e3) as u64),
                None => quantity_bytes(quantity).map(|bytes| bytes.saturating_mul(1000)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::pod::resource;
    use serde_json::{Value, from_value, json};

    fn facts(quotas: Value, limits: Value) -> Facts {
        Facts {
            quotas: from_value(quotas).unwrap(),
            limits: from_value(limits).unwrap(),
            ..Facts::default()
        }
    }

    fn quota(hard: Value, used: Value) -> Value {
        json!([{"metadata": {"name": "q"}, "spec": {}, "status": {"hard": hard, "used": used}}])
    }

    #[test]
    fn amount_that_a_quota_counts_must_be_stated() {
        let options = ClusterOptions::new("emptydir://".parse().unwrap());
        let memory = quota(json!({"limits.memory": "2Gi"}), json!({}));
        let refused = facts(memory.clone(), json!([])).judge_compute_quotas(&options, 1);
        let expected = refuse(ClusterObstacle::QuotaNeedsAmount {
            quota: "q".to_owned(),
            resource: "limits.memory".to_owned(),
        });
        assert_eq!(refused, expected);
        let mut unknown = facts(memory.clone(), json!([]));
        unknown.limits = None;
        assert_eq!(unknown.judge_compute_quotas(&options, 1), Ok(()));
        let range = json!([{"metadata": {}, "spec": {"limits": [
            {"type": "Container", "default": {"memory": "1Gi"}}]}}]);
        let ranged = facts(memory, range);
        assert_eq!(ranged.judge_compute_quotas(&options, 2), Ok(()));
        assert!(ranged.judge_compute_quotas(&options, 3).is_err());
    }

    #[test]
    fn pods_beyond_a_quota_of_cpus_are_refused() {
        let mut options = ClusterOptions::new("emptydir://".parse().unwrap());
        options.pod.requests = resource("cpu=750m").into_iter().collect();
        let cpus = |used: &str| {
            let quota = quota(
                json!({"requests.cpu": "2", "pods": "9"}),
                json!({"requests.cpu": used}),
            );
            facts(quota, json!([])).judge_compute_quotas(&options, 2)
        };
        assert_eq!(cpus("0.5"), Ok(()));
        let expected = refuse(ClusterObstacle::QuotaExceeded {
            quota: "q".to_owned(),
            resource: "requests.cpu".to_owned(),
            shortage: QuotaShortage::Amount {
                needed_milli: 1500,
                left_milli: 1000,
            },
        });
        assert_eq!(cpus("1"), expected);
    }
}
