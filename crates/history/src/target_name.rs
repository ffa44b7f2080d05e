//! Stored names of local targets: absolute, because `.` means nothing after the command has ended.

use super::record::named_target;
use iosonde_job::plan::{Engine, Plan};
use iosonde_job::target_scheme::{is_path_name, is_simulated_name};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Returns the absolute path of an existing file or directory, with links resolved. Links to
/// devices (`/dev/disk/by-id/...`) stay, as they are more stable. Other names are unchanged.
pub fn absolute(name: &str) -> String {
    if !is_path_name(name) {
        return name.to_owned();
    }
    let path = Path::new(name);
    let Ok(facts) = std::fs::metadata(path) else {
        return name.to_owned();
    };
    let goes_up = path.components().any(|part| part.as_os_str() == "..");
    let found = match facts.file_type().is_block_device() && !goes_up {
        true => std::path::absolute(path),
        false => path.canonicalize(),
    };
    let found = found
        .ok()
        .and_then(|path| path.into_os_string().into_string().ok());
    found.unwrap_or_else(|| name.to_owned())
}

/// Returns the target of a local plan. A job's files may be gone, but their directories exist.
pub fn target_here(plan: &Plan) -> String {
    let has_files = |engine| !matches!(engine, Engine::Null | Engine::Rados | Engine::Rbd);
    match named_target(plan) {
        Some(names) => {
            let names: Vec<String> = names.iter().map(|name| absolute_file(name)).collect();
            names.join(":")
        }
        None if plan.jobs.iter().any(|job| has_files(job.io.engine)) => absolute("."),
        None => ".".to_owned(),
    }
}

fn absolute_file(name: &str) -> String {
    let path = Path::new(name);
    match (
        path.exists(),
        path.file_name().and_then(|file| file.to_str()),
    ) {
        (false, Some(file)) if !is_simulated_name(name) => {
            let directory = match path.parent().and_then(Path::to_str) {
                None | Some("") => ".",
                Some(directory) => directory,
            };
            if !Path::new(directory).is_dir() {
                return name.to_owned();
            }
            format!("{}/{file}", absolute(directory).trim_end_matches('/'))
        }
        _ => absolute(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::plan::Job;

    #[test]
    fn file_in_a_directory_is_named_with_it() {
        let mut job = Job::new("a");
        job.files.directories = vec!["/srv/".to_owned(), "/elsewhere".to_owned()];
        job.files.filenames = vec!["data".to_owned(), "log".to_owned()];
        let plan = Plan {
            jobs: vec![job],
            ..Plan::default()
        };
        assert_eq!(named_target(&plan).unwrap(), ["/srv/data", "/srv/log"]);
    }

    #[test]
    fn local_names_become_absolute_and_uris_do_not() {
        let here = std::env::current_dir().unwrap().canonicalize().unwrap();
        let here = here.to_str().unwrap();
        assert_eq!(absolute("."), here);
        assert_eq!(absolute("src/.."), here);
        assert_eq!(absolute("src/"), format!("{here}/src"));
        assert_eq!(absolute("Cargo.toml"), format!("{here}/Cargo.toml"));
        for name in [
            "sim:iops=100",
            "sc://fast",
            "rados://pool",
            "/no/such/place",
            "disk",
        ] {
            assert_eq!(absolute(name), name);
        }
        assert_eq!(absolute_file("gone.0"), format!("{here}/gone.0"));
        assert_eq!(absolute_file("src/gone.0"), format!("{here}/src/gone.0"));
        assert_eq!(absolute_file("nowhere/gone.0"), "nowhere/gone.0");
    }
}
