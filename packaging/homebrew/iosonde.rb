# Template: `cargo xtask dist` writes version, addresses and sums into the formula of a release.
class Iosonde < Formula
  desc "Storage benchmark for disks, Kubernetes storage classes and Ceph pools"
  homepage "@HOMEPAGE@"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on :linux

  on_intel do
    url "@URL@/iosonde-@VERSION@-x86_64-linux-gnu.tar.xz"
    sha256 "@SHA256:iosonde-@VERSION@-x86_64-linux-gnu.tar.xz@"
  end

  on_arm do
    url "@URL@/iosonde-@VERSION@-aarch64-linux-gnu.tar.xz"
    sha256 "@SHA256:iosonde-@VERSION@-aarch64-linux-gnu.tar.xz@"
  end

  def install
    bin.install "bin/iosonde"
    man1.install Dir["share/man/man1/*.1"]
    bash_completion.install "share/bash-completion/completions/iosonde"
    zsh_completion.install "share/zsh/site-functions/_iosonde"
    fish_completion.install "share/fish/vendor_completions.d/iosonde.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/iosonde --version")
    assert_match "sim:hdd", shell_output("#{bin}/iosonde probe sim:hdd --quick --no-save")
  end
end
