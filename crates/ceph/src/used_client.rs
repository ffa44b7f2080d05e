//! Describes the client and the target of a worker, for the result.

use crate::sys::io_ctx::IoCtx;
use crate::sys::rados;
use crate::sys::rbd::{self, Image};
use crate::uri::target_uri;
use iosonde_job::plan::{Ceph, Engine};
use iosonde_result::run::CephUsed;
use iosonde_result::run_error::RunError;

/// Description of an image and its client, for the result.
pub(crate) fn describe_image(ceph: &Ceph, image: &Image) -> Result<CephUsed, RunError> {
    let cluster = image.pool().cluster();
    let of_client = |name: &str| cluster.get(name).unwrap_or_default();
    Ok(CephUsed {
        cache: Some(cache_policy(|name| image.setting(name), of_client)),
        ..describe_pool(Engine::Rbd, ceph, image.pool())?
    })
}

/// Cache policy of an image, or `off`. Like librbd, ignores invalid values in the settings of the
/// image or its pool.
fn cache_policy<'a>(
    of_image: impl Fn(&str) -> Option<&'a str>,
    of_client: impl Fn(&str) -> String,
) -> String {
    let is_on = |value: &str| match value.to_ascii_lowercase().as_str() {
        "true" => Some(true),
        "false" => Some(false),
        number => number.parse::<i64>().ok().map(|number| number != 0),
    };
    let on = of_image("rbd_cache").and_then(is_on);
    if on.or_else(|| is_on(&of_client("rbd_cache"))) != Some(true) {
        return "off".to_owned();
    }
    // Without dirty bytes, each write waits for the cluster, whatever the policy is.
    let dirty_bytes = of_image("rbd_cache_max_dirty").map(str::to_owned);
    let dirty_bytes = dirty_bytes.unwrap_or_else(|| of_client("rbd_cache_max_dirty"));
    if dirty_bytes.trim().parse::<u64>() == Ok(0) {
        return "writethrough".to_owned();
    }
    let is_policy = |value: &&str| ["writethrough", "writeback", "writearound"].contains(value);
    let policy = of_image("rbd_cache_policy").filter(is_policy);
    policy.map_or_else(|| of_client("rbd_cache_policy"), str::to_owned)
}

/// Description of the client and its pool, for the result.
pub(crate) fn describe_pool(
    engine: Engine,
    ceph: &Ceph,
    pool: &IoCtx,
) -> Result<CephUsed, RunError> {
    let name = target_uri(engine, ceph, ceph.image.as_deref());
    let cluster = pool.cluster();
    let is_rbd = engine == Engine::Rbd;
    let client = match is_rbd {
        true => rbd::version().map(|version| format!("librbd {version}")),
        false => rados::version().map(|version| format!("librados {version}")),
    };
    Ok(CephUsed {
        client: client.map_err(|error| error.on(&name))?,
        fsid: cluster.fsid().map_err(|error| error.on(&name))?,
        pool: ceph.pool.clone(),
        namespace: ceph.namespace.clone(),
        image: ceph.image.clone().filter(|_| is_rbd),
        object_bytes: ceph.object_bytes.filter(|_| !is_rbd),
        cache: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_policy_of_image_overrides_client() {
        let policy_of = |of_image: &[(&str, &'static str)], of_client: &[(&str, &str)]| {
            let find = |list: &[(&str, &'static str)], name: &str| {
                let found = list.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| *value)
            };
            let client = |name: &str| {
                let found = of_client.iter().find(|(known, _)| *known == name);
                found.map_or_else(String::new, |(_, value)| (*value).to_owned())
            };
            cache_policy(|name| find(of_image, name), client)
        };
        let (on, policy) = (("rbd_cache", "true"), ("rbd_cache_policy", "writearound"));
        assert_eq!(policy_of(&[], &[on, policy]), "writearound");
        assert_eq!(policy_of(&[], &[("rbd_cache", "false"), policy]), "off");
        for off in ["false", "False", "0"] {
            assert_eq!(policy_of(&[("rbd_cache", off)], &[on, policy]), "off");
        }
        for on in ["true", "1"] {
            let own = [("rbd_cache", on), ("rbd_cache_policy", "writeback")];
            assert_eq!(
                policy_of(&own, &[("rbd_cache", "false"), policy]),
                "writeback"
            );
        }
        let no_dirty = [("rbd_cache_max_dirty", "0")];
        assert_eq!(policy_of(&no_dirty, &[on, policy]), "writethrough");
        let wrong = [("rbd_cache", "yes"), ("rbd_cache_policy", "fast")];
        assert_eq!(policy_of(&wrong, &[on, policy]), "writearound");
    }
}
