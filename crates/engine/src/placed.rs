//! Plans whose files are named by the URIs of Ceph: they become plans of the engines `rados` and `rbd`. Pure.
//!
//! A study knows its target by a path alone. For a pool that path is `rados://POOL/FILE` or `rados://POOL/NAMESPACE/FILE`; where
//! the file has slashes itself and there is no namespace, nothing stands for that: `rados://POOL//FILE`. For an image it is
//! `rbd://POOL/IMAGE`.

use iosonde_job::Target;
use iosonde_job::plan::{Ceph, CephAccess, Engine, Job, Plan};
use std::borrow::Cow;

/// Size of the objects that a file in a pool is spread over, as in an RBD image or CephFS.
pub const OBJECT_BYTES: u64 = 4 << 20;

/// The path of a file in a pool. `None` when the target is not a pool.
pub fn file_in(target: &Target, file: &str) -> Option<String> {
    match target {
        Target::Rados { pool, namespace } => {
            let namespace = namespace.as_deref().unwrap_or_default();
            if namespace.is_empty() && !file.contains('/') {
                return Some(format!("rados://{pool}/{file}"));
            }
            Some(format!("rados://{pool}/{namespace}/{file}"))
        }
        _ => None,
    }
}

/// What a path means: the engine, its options, and the file's name there.
fn meaning(path: &str, access: &CephAccess) -> Option<(Engine, Ceph, String)> {
    let base = Ceph {
        access: access.clone(),
        ..Ceph::default()
    };
    if let Some(rest) = path.strip_prefix("rados://") {
        let (pool, place) = rest.split_once('/')?;
        let (namespace, file) = place.split_once('/').unwrap_or(("", place));
        let ceph = Ceph {
            pool: pool.to_owned(),
            namespace: Some(namespace.to_owned()).filter(|name| !name.is_empty()),
            object_bytes: Some(OBJECT_BYTES),
            ..base
        };
        return Some((Engine::Rados, ceph, file.to_owned()));
    }
    let Ok(Target::Rbd { pool, image }) = path.parse() else {
        return None;
    };
    let ceph = Ceph {
        pool,
        image: Some(image.clone()),
        ..base
    };
    Some((Engine::Rbd, ceph, image))
}

/// The plan as the engine runs it.
pub fn placed<'a>(plan: &'a Plan, access: &CephAccess) -> Cow<'a, Plan> {
    let is_ours = |job: &Job| {
        let files = &job.files;
        let names = files.filenames.iter().chain(&files.filename_format);
        let has_uri = |name: &String| name.starts_with("rados://") || name.starts_with("rbd://");
        !matches!(job.io.engine, Engine::Null | Engine::Sim) && names.into_iter().any(has_uri)
    };
    if !plan.jobs.iter().any(is_ours) {
        return Cow::Borrowed(plan);
    }
    let mut plan = plan.clone();
    for job in plan.jobs.iter_mut().filter(|job| is_ours(job)) {
        place(job, access);
    }
    Cow::Owned(plan)
}

fn place(job: &mut Job, access: &CephAccess) {
    let files = &mut job.files;
    let mut names: Vec<&mut String> = files.filenames.iter_mut().collect();
    names.extend(&mut files.filename_format);
    for name in names {
        if let Some((engine, ceph, file)) = meaning(name, access) {
            *name = file;
            job.io.engine = engine;
            job.io.ceph = Some(Box::new(ceph));
        }
    }
    files.directories.clear();
    files.opendir = None;
}

/// Puts all files of a plan on a target of Ceph, whatever their names say: below `prefix` in a pool, or on the image.
pub fn put(plan: &mut Plan, target: &Target, prefix: &str) {
    for job in &mut plan.jobs {
        if matches!(job.io.engine, Engine::Null | Engine::Sim) {
            continue;
        }
        let files = &mut job.files;
        files.directories.clear();
        files.opendir = None;
        if let Target::Rbd { .. } = target {
            files.filenames = vec![target.to_string()];
            continue;
        }
        let within = |name: &str| {
            let base = name.rsplit('/').next().unwrap_or_default();
            file_in(target, &format!("{prefix}{base}"))
        };
        if files.filenames.is_empty() {
            let format = files.filename_format.as_deref();
            files.filename_format = within(format.unwrap_or("$jobname.$jobnum.$filenum"));
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
    fn uris_become_engines() {
        let access = CephAccess {
            client: Some("bench".to_owned()),
            ..CephAccess::default()
        };
        let plan = job("rados://p/ns/iosonde-1-data");
        let plan = placed(&plan, &access);
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
        let plan = placed(&plan, &access);
        let io = &plan.jobs[0].io;
        assert_eq!(io.engine, Engine::Rbd);
        assert_eq!(io.ceph.as_ref().unwrap().image.as_deref(), Some("i"));
        let elsewhere = job("/mnt/x");
        assert!(matches!(placed(&elsewhere, &access), Cow::Borrowed(_)));
    }

    #[test]
    fn a_jobs_files_are_put_below_our_prefix() {
        let target: Target = "rados://p".parse().unwrap();
        let mut plan = job("/dev/sda");
        put(&mut plan, &target, "iosonde-7-");
        assert_eq!(plan.jobs[0].files.filenames, ["rados://p/iosonde-7-sda"]);
        let plan = placed(&plan, &CephAccess::default()).into_owned();
        assert_eq!(plan.jobs[0].files.filenames, ["iosonde-7-sda"]);
        assert_eq!(plan.jobs[0].io.ceph.as_ref().unwrap().namespace, None);
        let mut unnamed = job("x");
        unnamed.jobs[0].files.filenames.clear();
        put(&mut unnamed, &target, "iosonde-7-");
        let unnamed = placed(&unnamed, &CephAccess::default()).into_owned();
        assert_eq!(
            unnamed.jobs[0].files.filename_format.as_deref(),
            Some("iosonde-7-$jobname.$jobnum.$filenum")
        );
        assert_eq!(unnamed.jobs[0].io.engine, Engine::Rados);
    }
}
