//! URIs of pools, objects and images: in file names of jobs, and in messages. Pure.
//!
//! A job whose file name is a URI of Ceph uses the engine `rados` or `rbd`.
//!
//! A study names its target by a path. For a pool that is `rados://POOL/FILE` or
//! `rados://POOL/NAMESPACE/FILE`. A file with slashes and without a namespace is
//! `rados://POOL//FILE`. An image is `rbd://POOL/IMAGE` or `rbd://POOL/NAMESPACE/IMAGE`.

use iosonde_job::plan::{Ceph, CephAccess, Engine, Job, Plan};
use iosonde_job::relocate::relocate_to_file;
use iosonde_job::target_scheme::is_ceph_name;
use iosonde_job::{TargetScheme, TargetUri};
use iosonde_result::run_error::{RunError, UnsupportedFeature};
use std::borrow::Cow;
use std::path::Path;

/// Object size of a file in a pool, the default of RBD and CephFS.
const OBJECT_BYTES: u64 = 4 << 20;

/// Path of a file in a pool. `None` if the target is not a pool.
pub fn pool_file_uri(target: &TargetUri, file: &str) -> Option<String> {
    match target {
        TargetUri::Rados { pool, namespace } => {
            let namespace = namespace.as_deref().unwrap_or_default();
            if namespace.is_empty() && !file.contains('/') {
                return Some(format!("rados://{pool}/{file}"));
            }
            Some(format!("rados://{pool}/{namespace}/{file}"))
        }
        _ => None,
    }
}

/// URI of a pool, object or image, for messages.
pub(crate) fn target_uri(engine: Engine, ceph: &Ceph, object: Option<&str>) -> String {
    let scheme = if engine == Engine::Rbd {
        "rbd"
    } else {
        "rados"
    };
    format!("{scheme}://{}", target_path(ceph, object))
}

/// A pool, an object in it, or an image, as the tools of Ceph name it: without a scheme.
pub(crate) fn target_path(ceph: &Ceph, object: Option<&str>) -> String {
    let parts = [Some(ceph.pool.as_str()), ceph.namespace.as_deref(), object];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    parts.join("/")
}

/// Name of a job's file in messages.
pub(crate) fn file_name(job: &Job, path: &Path) -> String {
    match (job.io.engine, job.io.ceph.as_deref()) {
        (engine, Some(ceph)) if engine.is_ceph() => {
            target_uri(engine, ceph, Some(&object_name(path)))
        }
        _ => path.display().to_string(),
    }
}

/// URIs of all objects or of the image that a job names, once its URIs are resolved.
pub(crate) fn file_uris(job: &Job) -> Vec<String> {
    let Some(ceph) = job.io.ceph.as_deref() else {
        return Vec::new();
    };
    match job.io.engine {
        Engine::Rados => {
            let pool = TargetUri::Rados {
                pool: ceph.pool.clone(),
                namespace: ceph.namespace.clone(),
            };
            let names = job.files.names();
            names
                .filter_map(|name| pool_file_uri(&pool, name))
                .collect()
        }
        Engine::Rbd => {
            let namespace = ceph.namespace.as_deref().unwrap_or_default();
            let image = ceph.image.as_deref().unwrap_or_default();
            let parts = [&ceph.pool, namespace, image].into_iter();
            let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
            vec![format!("rbd://{}", parts.join("/"))]
        }
        _ => Vec::new(),
    }
}

/// Object name of a file's path.
pub(crate) fn object_name(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A URI in a file name: engine, location, and file name.
struct CephUri {
    engine: Engine,
    pool: String,
    namespace: Option<String>,
    image: Option<String>,
    file: String,
}

fn parse_uri(path: &str) -> Option<CephUri> {
    if let Some(rest) = TargetScheme::Rados.strip(path) {
        let (pool, place) = rest.split_once('/')?;
        let (namespace, file) = place.split_once('/').unwrap_or(("", place));
        return Some(CephUri {
            engine: Engine::Rados,
            pool: pool.to_owned(),
            namespace: Some(namespace.to_owned()).filter(|name| !name.is_empty()),
            image: None,
            file: file.to_owned(),
        });
    }
    let Ok(TargetUri::Rbd {
        pool,
        namespace,
        image,
    }) = path.parse()
    else {
        return None;
    };
    Some(CephUri {
        engine: Engine::Rbd,
        pool,
        namespace,
        image: Some(image.clone()),
        file: image,
    })
}

/// Error: a job and its target have different values for an option.
fn contradiction(job: &Job, option: &str, own: &str, given: (&str, &str)) -> RunError {
    let (how, value) = given;
    UnsupportedFeature::OptionOfOtherTarget {
        job: job.name.clone(),
        option: option.to_owned(),
        value: own.to_owned(),
        other_source: how.to_owned(),
        other_value: value.to_owned(),
    }
    .into()
}

/// Access of a job to its cluster: its own options, else those of the command line.
fn merged_access(job: &Job, access: &CephAccess) -> Result<CephAccess, RunError> {
    let usual = CephAccess::default();
    let own = match job.io.ceph.as_deref() {
        Some(ceph) => &ceph.access,
        None => return Ok(access.clone()),
    };
    let id = |name: &str| name.strip_prefix("client.").unwrap_or(name).to_owned();
    let one = |option, how, own: &Option<String>, given: &Option<String>| match (own, given) {
        (Some(own), Some(given)) if id(own) != id(given) => {
            Err(contradiction(job, option, own, (how, given)))
        }
        (None, given) => Ok(given.clone()),
        (own, _) => Ok(own.clone()),
    };
    let timeout_s = match (own.timeout_s, access.timeout_s) {
        (own, given) if given == usual.timeout_s => own,
        (own, given) if own == usual.timeout_s || own == given => given,
        (own, given) => {
            let (own, given) = (own.to_string(), given.to_string());
            let said = ("--ceph-timeout", given.as_str());
            return Err(contradiction(job, "ceph_timeout", &own, said));
        }
    };
    Ok(CephAccess {
        conf: one("conf", "--ceph-conf", &own.conf, &access.conf)?,
        cluster: own.cluster.clone().or_else(|| access.cluster.clone()),
        client: one("clientname", "--ceph-client", &own.client, &access.client)?,
        keyring: one(
            "ceph_keyring",
            "--ceph-keyring",
            &own.keyring,
            &access.keyring,
        )?,
        timeout_s,
    })
}

/// Options of a job's engine on its target. The target determines pool, image and, if it has one,
/// the namespace. All others are those of the job.
fn merged_options(job: &Job, uri: &CephUri, access: &CephAccess) -> Result<Ceph, RunError> {
    let own = job.io.ceph.as_deref().cloned().unwrap_or_default();
    let namespace = match (own.namespace.as_ref(), uri.namespace.as_ref()) {
        (Some(own), Some(given)) if own != given => {
            return Err(contradiction(
                job,
                "ceph_namespace",
                own,
                ("the target", given),
            ));
        }
        (own, given) => given.or(own).cloned(),
    };
    let in_pool = uri.engine == Engine::Rados;
    Ok(Ceph {
        access: merged_access(job, access)?,
        pool: uri.pool.clone(),
        namespace,
        image: uri.image.clone(),
        object_bytes: own.object_bytes.or(Some(OBJECT_BYTES)).filter(|_| in_pool),
        ..own
    })
}

/// Returns the plan with URIs replaced by engine options.
///
/// # Errors
/// A job that contradicts its target.
pub(crate) fn resolve_uris<'a>(
    plan: &'a Plan,
    access: &CephAccess,
) -> Result<Cow<'a, Plan>, RunError> {
    let is_ours = |job: &Job| {
        let has_uri = |name: &String| is_ceph_name(name);
        !matches!(job.io.engine, Engine::Null | Engine::Sim) && job.files.names().any(has_uri)
    };
    if !plan.jobs.iter().any(is_ours) {
        return Ok(Cow::Borrowed(plan));
    }
    let mut plan = plan.clone();
    for job in plan.jobs.iter_mut().filter(|job| is_ours(job)) {
        resolve_job_uris(job, access)?;
    }
    Ok(Cow::Owned(plan))
}

fn resolve_job_uris(job: &mut Job, access: &CephAccess) -> Result<(), RunError> {
    let names = job.files.names().rev();
    let Some(last) = names.filter_map(|name| parse_uri(name)).next() else {
        return Ok(());
    };
    let ceph = merged_options(job, &last, access)?;
    job.io.engine = last.engine;
    job.io.ceph = Some(Box::new(ceph));
    let files = &mut job.files;
    for name in files.filenames.iter_mut().chain(&mut files.filename_format) {
        if let Some(uri) = parse_uri(name) {
            *name = uri.file;
        }
    }
    files.directories.clear();
    files.opendir.clear();
    Ok(())
}

/// Moves all files of a plan to a target of Ceph: below `prefix` in a pool, or onto the image.
pub fn relocate_to_ceph(plan: &mut Plan, target: &TargetUri, prefix: &str) {
    for job in &mut plan.jobs {
        if matches!(job.io.engine, Engine::Null | Engine::Sim) {
            continue;
        }
        if let TargetUri::Rbd { .. } = target {
            relocate_to_file(job, &target.to_string());
            continue;
        }
        let files = &mut job.files;
        files.directories.clear();
        files.opendir.clear();
        let within = |name: &str| {
            let base = name.rsplit('/').next().unwrap_or_default();
            pool_file_uri(target, &format!("{prefix}{base}"))
        };
        if files.filenames.is_empty() {
            let format = files.filename_format.as_deref();
            files.filename_format = within(format.unwrap_or("$jobname.$jobnum.$filenum"));
        } else {
            files.filename_format = None;
        }
        files.filenames = files
            .filenames
            .iter()
            .filter_map(|name| within(name))
            .collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(filename: &str) -> Plan {
        let mut job = Job::new("a");
        job.files.filenames = vec![filename.to_owned()];
        Plan {
            jobs: vec![job],
            global_options: Vec::new(),
        }
    }

    #[test]
    fn uri_selects_engine_and_options() {
        let access = CephAccess {
            client: Some("bench".to_owned()),
            ..CephAccess::default()
        };
        let plan = job("rados://p/ns/iosonde-1-data");
        let plan = resolve_uris(&plan, &access).unwrap();
        let io = &plan.jobs[0].io;
        let ceph = io.ceph.as_ref().unwrap();
        assert_eq!(io.engine, Engine::Rados);
        assert_eq!(
            (ceph.pool.as_str(), ceph.namespace.as_deref()),
            ("p", Some("ns"))
        );
        assert_eq!(ceph.object_bytes, Some(OBJECT_BYTES));
        assert_eq!(ceph.access, access);
        assert_eq!(plan.jobs[0].files.filenames, ["iosonde-1-data"]);
        let plan = job("rbd://p/i");
        let plan = resolve_uris(&plan, &access).unwrap();
        let io = &plan.jobs[0].io;
        assert_eq!(io.engine, Engine::Rbd);
        assert_eq!(io.ceph.as_ref().unwrap().image.as_deref(), Some("i"));
        let plan = job("rbd://p/ns/i");
        let plan = resolve_uris(&plan, &access).unwrap();
        let ceph = plan.jobs[0].io.ceph.as_ref().unwrap();
        assert_eq!(
            (ceph.namespace.as_deref(), ceph.image.as_deref()),
            (Some("ns"), Some("i"))
        );
        assert_eq!(file_uris(&plan.jobs[0]), ["rbd://p/ns/i"]);
        let elsewhere = job("/mnt/x");
        assert!(matches!(
            resolve_uris(&elsewhere, &access),
            Ok(Cow::Borrowed(_))
        ));
    }

    #[test]
    fn relocated_files_have_our_prefix() {
        let target: TargetUri = "rados://p".parse().unwrap();
        let mut plan = job("/dev/sda");
        relocate_to_ceph(&mut plan, &target, "iosonde-7-");
        assert_eq!(plan.jobs[0].files.filenames, ["rados://p/iosonde-7-sda"]);
        let plan = resolve_uris(&plan, &CephAccess::default())
            .unwrap()
            .into_owned();
        assert_eq!(plan.jobs[0].files.filenames, ["iosonde-7-sda"]);
        assert_eq!(plan.jobs[0].io.ceph.as_ref().unwrap().namespace, None);
        let mut unnamed = job("x");
        unnamed.jobs[0].files.filenames.clear();
        relocate_to_ceph(&mut unnamed, &target, "iosonde-7-");
        let unnamed = resolve_uris(&unnamed, &CephAccess::default())
            .unwrap()
            .into_owned();
        assert_eq!(
            unnamed.jobs[0].files.filename_format.as_deref(),
            Some("iosonde-7-$jobname.$jobnum.$filenum")
        );
        assert_eq!(unnamed.jobs[0].io.engine, Engine::Rados);
    }

    /// `filename` and `opendir` override `filename_format`.
    #[test]
    fn uri_in_an_unused_format_changes_no_engine() {
        let named = |target: &str, format: &str| {
            let mut plan = job(target);
            plan.jobs[0].files.filename_format = Some(format.to_owned());
            let resolved = resolve_uris(&plan, &CephAccess::default()).unwrap();
            resolved.jobs[0].clone()
        };
        let file = named("/mnt/x", "rbd://p/precious");
        assert!(!file.io.engine.is_ceph());
        let image = named("rbd://p/i", "rbd://p/precious");
        assert_eq!(image.io.ceph.unwrap().image.as_deref(), Some("i"));
        let mut opened = job("x");
        let files = &mut opened.jobs[0].files;
        files.filenames.clear();
        files.filename_format = Some("rbd://p/precious".to_owned());
        files.opendir = vec!["/mnt".to_owned()];
        let resolved = resolve_uris(&opened, &CephAccess::default());
        assert!(matches!(resolved, Ok(Cow::Borrowed(_))), "{resolved:?}");
        let mut plan = job("x");
        plan.jobs[0].files.filename_format = Some("rbd://p/precious".to_owned());
        relocate_to_ceph(&mut plan, &"rados://p".parse().unwrap(), "iosonde-7-");
        assert_eq!(plan.jobs[0].files.filename_format, None);
        relocate_to_ceph(&mut plan, &"rbd://p/i".parse().unwrap(), "iosonde-7-");
        assert_eq!(plan.jobs[0].files.filenames, ["rbd://p/i"]);
    }

    #[test]
    fn file_uris_name_objects_and_image_with_namespace() {
        let uris = |name: &str, namespace: Option<&str>| {
            let mut plan = job(name);
            plan.jobs[0].io.ceph = Some(Box::new(Ceph {
                namespace: namespace.map(str::to_owned),
                ..Ceph::default()
            }));
            let plan = resolve_uris(&plan, &CephAccess::default()).unwrap();
            file_uris(&plan.jobs[0])
        };
        for name in ["rados://p/f", "rados://p/ns/f", "rbd://p/i"] {
            assert_eq!(uris(name, None), [name]);
        }
        assert_eq!(uris("rados://p/f", Some("own")), ["rados://p/own/f"]);
        assert_eq!(uris("rbd://p/i", Some("own")), ["rbd://p/own/i"]);
        assert_eq!(uris("/mnt/f", None), Vec::<String>::new());
    }

    fn with_options(filename: &str, set: impl FnOnce(&mut Ceph)) -> Plan {
        let mut plan = job(filename);
        let mut ceph = Ceph {
            pool: "elsewhere".to_owned(),
            ..Ceph::default()
        };
        set(&mut ceph);
        plan.jobs[0].io.engine = Engine::Rados;
        plan.jobs[0].io.ceph = Some(Box::new(ceph));
        plan
    }

    fn text(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn job_options_apply_where_target_has_none() {
        let set = |ceph: &mut Ceph| {
            ceph.busy_poll = true;
            ceph.touch_objects = false;
            ceph.object_bytes = Some(1 << 20);
            ceph.namespace = text("own");
            ceph.access.timeout_s = 7;
            ceph.access.client = text("client.bench");
            ceph.access.conf = text("/c");
        };
        let given = CephAccess {
            client: text("bench"),
            keyring: text("/k"),
            ..CephAccess::default()
        };
        for (uri, namespace) in [("rados://p/f", "own"), ("rados://p/own/f", "own")] {
            let plan = with_options(uri, set);
            let plan = resolve_uris(&plan, &given).unwrap();
            let ceph = plan.jobs[0].io.ceph.as_deref().unwrap();
            assert_eq!(ceph.pool, "p");
            assert_eq!(ceph.namespace.as_deref(), Some(namespace));
            assert!(ceph.busy_poll && !ceph.touch_objects);
            assert_eq!(ceph.object_bytes, Some(1 << 20));
            assert_eq!(ceph.access.timeout_s, 7);
            assert_eq!(ceph.access.conf.as_deref(), Some("/c"));
            assert_eq!(ceph.access.keyring.as_deref(), Some("/k"));
        }
        let plan = with_options("rbd://p/i", set);
        let plan = resolve_uris(&plan, &CephAccess::default()).unwrap();
        let (job, ceph) = (&plan.jobs[0], plan.jobs[0].io.ceph.as_deref().unwrap());
        assert_eq!(job.io.engine, Engine::Rbd);
        let place = (ceph.pool.as_str(), ceph.image.as_deref());
        assert_eq!(place, ("p", Some("i")));
        assert_eq!(ceph.namespace.as_deref(), Some("own"));
        assert!(ceph.busy_poll);
        assert_eq!(ceph.object_bytes, None);
        assert_eq!(ceph.access.timeout_s, 7);
    }

    #[test]
    fn job_that_contradicts_target_is_refused() {
        let refused = |uri: &str, set: &dyn Fn(&mut Ceph), access: &CephAccess| {
            let plan = with_options(uri, set);
            resolve_uris(&plan, access).unwrap_err()
        };
        let contradicts = |option: &str, own: &str, given: (&str, &str)| {
            contradiction(&Job::new("a"), option, own, given)
        };
        let usual = CephAccess::default();
        let error = refused(
            "rados://p/ns/f",
            &|ceph| ceph.namespace = text("own"),
            &usual,
        );
        let namespace = contradicts("ceph_namespace", "own", ("the target", "ns"));
        assert_eq!(error, namespace);
        let given = CephAccess {
            client: text("bench"),
            timeout_s: 5,
            ..CephAccess::default()
        };
        let error = refused(
            "rbd://p/i",
            &|ceph| ceph.access.client = text("admin"),
            &given,
        );
        let client = contradicts("clientname", "admin", ("--ceph-client", "bench"));
        assert_eq!(error, client);
        let error = refused("rbd://p/i", &|ceph| ceph.access.timeout_s = 9, &given);
        let timeout = contradicts("ceph_timeout", "9", ("--ceph-timeout", "5"));
        assert_eq!(error, timeout);
    }
}
