//! Files by which others install a release: manifests of krew and Homebrew, the Helm chart, and the
//! copy of install.sh that knows the address of the release.

mod helm_chart;
mod installer;

use super::architecture::{Architecture, Flavour};
use super::archive::sha256_hex;
use super::build;
use super::check_log::{CheckLog, UncheckedReason};
use super::check_scope::CheckScope;
use super::release::Release;
use anyhow::{Context, Result, anyhow, ensure};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Environment variable with the address of the published files, without a slash at the end.
const RELEASE_URL: &str = "IOSONDE_RELEASE_URL";
const KREW: &str = "packaging/krew/iosonde.yaml";
const FORMULA: &str = "packaging/homebrew/iosonde.rb";
const ACTIONLINT_REMEDY: &str =
    "Go 1.22 or newer: go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.7";
const KREW_FILE: &str = "iosonde.yaml";
const FORMULA_FILE: &str = "iosonde.rb";

/// Writes all manifests into the directory of the release. `sums` has the sha256 of each archive by
/// its name. A manifest whose archives were not built is left out.
pub(crate) fn write(release: &Release, sums: &BTreeMap<String, String>) -> Result<Vec<PathBuf>> {
    let url = published_url()?;
    // A reserved name, which no server has.
    let unpublished = format!(
        "https://iosonde.invalid/releases/download/v{}",
        release.version
    );
    let shown_url = url.as_ref().unwrap_or(&unpublished);
    let mut written = Vec::new();
    let mut sums = sums.clone();
    for architecture in Architecture::ALL {
        if let Some(path) = write_krew_archive(release, architecture)? {
            sums.insert(file_name(&path), sha256(&path)?);
            written.push(path);
        }
    }
    for (template, name) in [(KREW, KREW_FILE), (FORMULA, FORMULA_FILE)] {
        let path = release.root.join(template);
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        match fill_template(&text, &release.version, shown_url, &sums) {
            Ok(filled) => written.push(write_file(release, name, &filled)?),
            Err(missing) => println!("not written: {name} ({missing} was not built)"),
        }
    }
    written.push(installer::write(release, url.as_deref())?);
    written.push(helm_chart::package(release)?);
    Ok(written)
}

/// Returns the names of the manifests of a release with the clients of the scope. krew needs all
/// static clients, and Homebrew all others.
pub(crate) fn file_names(release: &Release, scope: &CheckScope) -> Vec<String> {
    let mut names = vec![installer::NAME.to_owned(), helm_chart::file_name(release)];
    for architecture in scope.architectures(Flavour::Static) {
        names.push(krew_archive_name(release, architecture));
    }
    for (flavour, manifest) in [(Flavour::Static, KREW_FILE), (Flavour::Gnu, FORMULA_FILE)] {
        let has_all = |architecture| scope.has_client(architecture, flavour);
        if Architecture::ALL.into_iter().all(has_all) {
            names.push(manifest.to_owned());
        }
    }
    names
}

/// Returns the name of the archive that krew unpacks.
fn krew_archive_name(release: &Release, architecture: Architecture) -> String {
    let (version, processor) = (&release.version, architecture.rust());
    format!("kubectl-iosonde-{version}-{processor}-linux.tar.gz")
}

/// Checks the manifests of the scope: those that [`file_names`] returns, and the workflows.
pub(crate) fn check(release: &Release, scope: &CheckScope, log: &mut CheckLog) -> Result<()> {
    let names = file_names(release, scope);
    let is_in_scope = |name: &str| names.iter().any(|known| known == name);
    installer::check(release, scope, log)?;
    if is_in_scope(KREW_FILE) {
        check_krew(release, log)?;
    }
    if is_in_scope(FORMULA_FILE) {
        check_formula(release, log)?;
    }
    check_workflows(&release.root, log)?;
    helm_chart::check(release, log)
}

/// The address of the published files, if the environment has it.
fn published_url() -> Result<Option<String>> {
    let Ok(url) = std::env::var(RELEASE_URL) else {
        return Ok(None);
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/:._~+%-".contains(c);
    ensure!(
        url.contains("://") && url.chars().all(is_plain),
        "{RELEASE_URL} is no plain address: {url}"
    );
    Ok(Some(url.trim_end_matches('/').to_owned()))
}

/// The page of the project: the part of an address before `/releases/`.
fn homepage(url: &str) -> &str {
    url.split_once("/releases/").map_or(url, |(page, _)| page)
}

/// Fills a template: `@VERSION@`, `@URL@`, `@HOMEPAGE@` and `@SHA256:FILE@`. Err is a file that has
/// no sum.
fn fill_template(
    template: &str,
    version: &str,
    url: &str,
    sums: &BTreeMap<String, String>,
) -> std::result::Result<String, String> {
    let text = template
        .replace("@VERSION@", version)
        .replace("@URL@", url)
        .replace("@HOMEPAGE@", homepage(url));
    let mut filled = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("@SHA256:") {
        let (file, after) = after.split_once('@').unwrap_or((after, ""));
        let sum = sums.get(file).ok_or_else(|| file.to_owned())?;
        filled.push_str(before);
        filled.push_str(sum);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

/// Converts a static archive from xz to gzip, since krew unpacks only zip and gzip. None: the
/// archive was not built.
fn write_krew_archive(release: &Release, architecture: Architecture) -> Result<Option<PathBuf>> {
    let name = release.archive_name(architecture, Flavour::Static);
    let archive = release.directory.join(format!("{name}.tar.xz"));
    if !archive.is_file() {
        return Ok(None);
    }
    let path = release
        .directory
        .join(krew_archive_name(release, architecture));
    let mut xz = Command::new("xz")
        .arg("-dc")
        .arg(&archive)
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run xz")?;
    let tar = xz.stdout.take().context("xz has no output")?;
    gzip_file(tar, &path)?;
    let unpacked = xz.wait()?;
    ensure!(unpacked.success(), "xz {}: {unpacked}", archive.display());
    Ok(Some(path))
}

/// The parts of a krew manifest that the check reads.
#[derive(Debug, Deserialize)]
struct KrewManifest {
    spec: KrewSpec,
}

#[derive(Debug, Deserialize)]
struct KrewSpec {
    version: String,
    platforms: Vec<KrewPlatform>,
}

#[derive(Debug, Deserialize)]
struct KrewPlatform {
    uri: String,
    sha256: String,
    bin: String,
}

/// Compares the krew manifest with the archives that it names.
fn check_krew(release: &Release, log: &mut CheckLog) -> Result<()> {
    let path = release.directory.join(KREW_FILE);
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let manifest: KrewManifest = serde_saphyr::from_str(&text)
        .map_err(|error| anyhow!("iosonde.yaml is no krew manifest: {error}"))?;
    ensure!(
        manifest.spec.version == format!("v{}", release.version),
        "iosonde.yaml has version {}",
        manifest.spec.version
    );
    for platform in &manifest.spec.platforms {
        let name = platform.uri.rsplit('/').next().unwrap_or_default();
        let archive = release.directory.join(name);
        let sum = sha256(&archive)?;
        ensure!(
            sum == platform.sha256,
            "{name}: iosonde.yaml has another sha256"
        );
        let listed = printed_text(Command::new("tar").arg("-tzf").arg(&archive))?;
        let program = format!("/bin/{}", platform.bin);
        ensure!(
            listed.lines().any(|line| line.ends_with(&program)),
            "{name} has no *{program}"
        );
    }
    log.add_checked(path.display());
    Ok(())
}

/// Checks the syntax of the formula.
fn check_formula(release: &Release, log: &mut CheckLog) -> Result<()> {
    let remedy = "Debian: apt-get install ruby";
    if !require_program("ruby", remedy, "syntax of iosonde.rb", log) {
        return Ok(());
    }
    let formula = release.directory.join(FORMULA_FILE);
    printed_text(Command::new("ruby").arg("-c").arg(&formula))?;
    log.add_checked(formula.display());
    Ok(())
}

/// Checks the syntax of all workflows and, by shellcheck, of their scripts.
fn check_workflows(root: &Path, log: &mut CheckLog) -> Result<()> {
    let shellcheck = "Debian: apt-get install shellcheck";
    let name = "syntax of .github/workflows";
    if !require_program("actionlint", ACTIONLINT_REMEDY, name, log)
        || !require_program("shellcheck", shellcheck, name, log)
    {
        return Ok(());
    }
    let mut actionlint = Command::new("actionlint");
    actionlint.current_dir(root).args(workflow_files(root)?);
    printed_text(&mut actionlint)?;
    log.add_checked(name);
    Ok(())
}

/// Returns the paths of all workflows below the root of the repository.
fn workflow_files(root: &Path) -> Result<Vec<PathBuf>> {
    let folder = root.join(".github/workflows");
    let listed =
        fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut paths = Vec::new();
    for entry in listed {
        let path = entry?.path();
        if (path.extension()).is_some_and(|suffix| suffix == "yml" || suffix == "yaml") {
            paths.push(path);
        }
    }
    ensure!(!paths.is_empty(), "{} has no workflow", folder.display());
    paths.sort();
    Ok(paths)
}

/// Returns whether the program is installed. If not, the log has the part that it would check.
fn require_program(program: &str, remedy: &'static str, part: &str, log: &mut CheckLog) -> bool {
    let is_ready = is_installed(program);
    if !is_ready {
        let program = program.to_owned();
        log.add_unchecked(part, UncheckedReason::MissingProgram { program, remedy });
    }
    is_ready
}

/// Writes a text file into the directory of the release.
fn write_file(release: &Release, name: &str, text: &str) -> Result<PathBuf> {
    let path = release.directory.join(name);
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// Compresses its input into a file. -n leaves name and time out, so that equal files stay equal.
fn gzip_file(input: impl Into<Stdio>, path: &Path) -> Result<()> {
    let file =
        fs::File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    let mut gzip = Command::new("gzip");
    gzip.args(["-n", "-9"]).stdin(input).stdout(file);
    build::run(&mut gzip)
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The sha256 of a file in hexadecimal digits.
fn sha256(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(sha256_hex(&bytes))
}

/// Runs a program that must succeed, and returns its standard output as text.
fn printed_text(command: &mut Command) -> Result<String> {
    let printed = build::output(command)?;
    Ok(String::from_utf8_lossy(&printed).into_owned())
}

/// Whether a folder of PATH has this program.
fn is_installed(name: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(name).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://example.com/o/iosonde/releases/download/v9.8.7";

    fn template(path: &str) -> String {
        fs::read_to_string(crate::repository::repository_root().join(path)).unwrap()
    }

    /// Sums of all archives of version 9.8.7.
    fn sums() -> BTreeMap<String, String> {
        let processors = Architecture::ALL.map(Architecture::rust);
        let names = processors.into_iter().flat_map(|processor| {
            [
                format!("iosonde-9.8.7-{processor}-linux-gnu.tar.xz"),
                format!("kubectl-iosonde-9.8.7-{processor}-linux.tar.gz"),
            ]
        });
        names
            .map(|name| (name.clone(), format!("sum-of-{name}")))
            .collect()
    }

    #[test]
    fn krew_template_filled_names_both_architectures() {
        let text = fill_template(&template(KREW), "9.8.7", URL, &sums()).unwrap();
        let manifest: KrewManifest = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(manifest.spec.version, "v9.8.7");
        assert_eq!(manifest.spec.platforms.len(), 2);
        for platform in manifest.spec.platforms {
            let (address, name) = platform.uri.rsplit_once('/').unwrap();
            assert_eq!(address, URL);
            assert_eq!(platform.sha256, format!("sum-of-{name}"));
            assert!(name.ends_with("-linux.tar.gz"), "{name}");
        }
        assert!(text.contains("homepage: \"https://example.com/o/iosonde\"\n"));
    }

    #[test]
    fn formula_template_filled_has_no_placeholder() {
        let text = fill_template(&template(FORMULA), "9.8.7", URL, &sums()).unwrap();
        let body = text.split_once("class ").unwrap().1;
        assert!(!body.contains('@'), "{body}");
        assert!(body.contains("sha256 \"sum-of-iosonde-9.8.7-aarch64-linux-gnu.tar.xz\""));
    }

    #[test]
    fn missing_archive_of_template_is_named() {
        let mut few = sums();
        let missing = "iosonde-9.8.7-aarch64-linux-gnu.tar.xz";
        few.remove(missing).unwrap();
        let error = fill_template(&template(FORMULA), "9.8.7", URL, &few).unwrap_err();
        assert_eq!(error, missing);
    }

    #[test]
    fn workflows_of_both_suffixes_are_listed() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join(".github/workflows");
        fs::create_dir_all(&folder).unwrap();
        assert!(workflow_files(root.path()).is_err());
        for name in ["release.yml", "a.yaml", "notes.md"] {
            fs::write(folder.join(name), "").unwrap();
        }
        assert_eq!(
            workflow_files(root.path()).unwrap(),
            [folder.join("a.yaml"), folder.join("release.yml")]
        );
    }

    #[test]
    fn missing_program_leaves_a_part_unchecked() {
        let mut log = CheckLog::default();
        assert!(require_program("sh", "", "shell", &mut log));
        assert!(log.is_complete());
        let program = "iosonde-no-such-program";
        assert!(!require_program(program, "install it", "part", &mut log));
        let summary = log.summary();
        let line = "\n  part: iosonde-no-such-program is not installed (install it)\n";
        assert!(summary.ends_with(line), "{summary}");
    }

    #[test]
    fn homepage_is_the_part_before_releases() {
        assert_eq!(homepage(URL), "https://example.com/o/iosonde");
        assert_eq!(homepage("file:///r/target/dist"), "file:///r/target/dist");
    }

    #[test]
    fn versions_of_documents_equal_the_workspace() {
        let version = env!("CARGO_PKG_VERSION");
        assert!(template("CITATION.cff").contains(&format!("\nversion: {version}\n")));
        let chart = template("packaging/helm/iosonde/Chart.yaml");
        assert!(
            chart.contains(&format!("\nversion: {version}\n")),
            "{chart}"
        );
        assert!(
            chart.contains(&format!("\nappVersion: \"{version}\"\n")),
            "{chart}"
        );
    }
}
