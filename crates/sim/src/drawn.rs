//! Random devices for tests of algorithms that judge devices. A search may be right on a single
//! invented device by chance.
//!
//! Each [`DeviceFamily`] is a different queueing network: parallel servers, a head, a token bucket,
//! or members with a queue each. The ranges of the parameters cover typical devices of the kind; no
//! value is a measurement of a product.

use super::keys::KEYS;
use iosonde_workload::rng::{Rng, mix64};
use std::fmt::Write as _;

/// A kind of device. Each has a preset of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(test, derive(strum::VariantArray))]
pub enum DeviceFamily {
    /// Rotating disk: one server with a head, which gains by reordering.
    HardDisk,
    /// A few servers behind a link.
    SataSsd,
    /// Many servers behind a fast link, with a cap on writes.
    Nvme,
    /// High latency and a cap on I/Os.
    NetworkIopsCap,
    /// High latency and a cap on bytes.
    NetworkBandwidthCap,
    /// High latency and a cap on I/Os with burst credits. The credits either run out at once or
    /// outlast any measurement.
    Burst,
    /// Rotating disks with a queue each; each write goes to two disks.
    Raid,
    /// Nodes with servers, chosen by a hash; each write goes to several nodes.
    Ceph,
    /// Server threads behind a slow link, with a limit per client process.
    Nfs,
    /// A fast device behind the caps of a cgroup.
    Throttled,
}

impl DeviceFamily {
    /// All families.
    pub const ALL: [DeviceFamily; 10] = [
        DeviceFamily::HardDisk,
        DeviceFamily::SataSsd,
        DeviceFamily::Nvme,
        DeviceFamily::NetworkIopsCap,
        DeviceFamily::NetworkBandwidthCap,
        DeviceFamily::Burst,
        DeviceFamily::Raid,
        DeviceFamily::Ceph,
        DeviceFamily::Nfs,
        DeviceFamily::Throttled,
    ];

    /// Name of the preset of the same kind.
    pub fn preset(self) -> &'static str {
        match self {
            DeviceFamily::HardDisk => "hdd",
            DeviceFamily::SataSsd => "sata-ssd",
            DeviceFamily::Nvme => "nvme",
            DeviceFamily::NetworkIopsCap => "net-iops-cap",
            DeviceFamily::NetworkBandwidthCap => "net-bw-cap",
            DeviceFamily::Burst => "burst",
            DeviceFamily::Raid => "raid",
            DeviceFamily::Ceph => "ceph",
            DeviceFamily::Nfs => "nfs",
            DeviceFamily::Throttled => "throttled",
        }
    }

    /// A device of this family as text for [`super::SimSpec::parse`]. Its speed varies slightly
    /// from second to second, as in all families.
    ///
    /// `slowdown` multiplies every time and divides every rate: the same curves from fewer I/Os.
    pub fn draw(self, seed: u64, slowdown: f64) -> String {
        let mut drawn = Drawing {
            rng: Rng::new(mix64(seed ^ (self as u64) << 32)),
            slowdown,
            text: format!("seed={seed}"),
        };
        match self {
            DeviceFamily::HardDisk => drawn.disks(1),
            DeviceFamily::SataSsd => drawn.sata_ssd(),
            DeviceFamily::Nvme => drawn.nvme(),
            DeviceFamily::NetworkIopsCap => drawn.network_iops_cap(),
            DeviceFamily::NetworkBandwidthCap => drawn.network_bandwidth_cap(),
            DeviceFamily::Burst => drawn.burst(),
            DeviceFamily::Raid => drawn.raid(),
            DeviceFamily::Ceph => drawn.ceph(),
            DeviceFamily::Nfs => drawn.nfs(),
            DeviceFamily::Throttled => drawn.throttled(),
        }
        let (noise, rho) = (drawn.between(0.0, 0.01), drawn.between(0.0, 0.5));
        drawn.is("noise", noise);
        drawn.is("noise_rho", rho);
        drawn.text
    }
}

const MIB: f64 = 1048576.0;

struct Drawing {
    rng: Rng,
    slowdown: f64,
    text: String,
}

impl Drawing {
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.rng.unit()
    }

    /// A random number whose logarithm is uniform.
    fn over_decades(&mut self, low: f64, high: f64) -> f64 {
        self.between(low.ln(), high.ln()).exp()
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.rng.below(choices.len() as u64) as usize]
    }

    fn is(&mut self, key: &str, value: impl std::fmt::Display) {
        debug_assert!(KEYS.iter().any(|known| known.name == key), "{key}");
        let _ = write!(self.text, ",{key}={value}");
    }

    /// A time in microseconds.
    fn time(&mut self, key: &str, us: f64) {
        let slowed = us * self.slowdown;
        self.is(key, format_args!("{slowed:.1}"));
    }

    /// A bandwidth in bytes per second.
    fn bandwidth(&mut self, key: &str, bytes_per_s: f64) {
        let slowed = (bytes_per_s / self.slowdown) as u64;
        self.is(key, slowed);
    }

    /// A token bucket without burst.
    fn cap(&mut self, key: &str, per_second: f64) {
        let slowed = (per_second / self.slowdown).round().max(1.0);
        self.is(key, slowed);
    }

    fn lognormal(&mut self, key: &str, low: f64, high: f64) {
        let variation = self.between(low, high);
        self.is(key, format_args!("lognormal:{variation:.3}"));
    }

    /// Service times with the given variation. The means are uniform in the ranges (microseconds).
    fn services(&mut self, read_us: (f64, f64), write_us: (f64, f64), variation: (f64, f64)) {
        let (read, write) = (
            self.between(read_us.0, read_us.1),
            self.between(write_us.0, write_us.1),
        );
        self.time("read_us", read);
        self.time("write_us", write);
        self.lognormal("read_dist", variation.0, variation.1);
        self.lognormal("write_dist", variation.0, variation.1);
    }

    fn disks(&mut self, members: u64) {
        self.is("members", members);
        self.services((100.0, 400.0), (100.0, 400.0), (0.05, 0.3));
        let (read, write) = (self.between(120.0, 260.0), self.between(120.0, 260.0));
        self.bandwidth("read_bw", read * MIB);
        self.bandwidth("write_bw", write * MIB);
        let track = self.between(600.0, 1500.0);
        self.time("track_us", track);
        let stroke = self.between(8_000.0, 20_000.0);
        self.time("stroke_us", stroke);
        // Rotation times of 5400, 7200, 10,000 and 15,000 rpm, in microseconds.
        let rotation = self.one_of(&[11_111.0, 8_333.0, 6_000.0, 4_000.0]);
        self.time("rotation_us", rotation);
        let reorder = self.between(0.15, 0.3);
        self.is("reorder", reorder);
        let queue = self.one_of(&[16, 32, 64]);
        self.is("queue", queue);
        self.is("span", "4t");
    }

    fn raid(&mut self) {
        let members = self.one_of(&[4, 6, 8, 12]);
        self.disks(members);
        let stripe = self.one_of(&["64k", "256k", "1m"]);
        self.is("stripe", stripe);
        self.is("replicas", 2);
    }

    fn sata_ssd(&mut self) {
        self.services((60.0, 140.0), (30.0, 80.0), (0.1, 0.4));
        let parallel = 4 + self.rng.below(13);
        self.is("parallel", parallel);
        let (read, write) = (self.between(100.0, 250.0), self.between(100.0, 250.0));
        self.bandwidth("read_bw", read * MIB);
        self.bandwidth("write_bw", write * MIB);
        let link = self.between(480.0, 560.0);
        self.bandwidth("link_bw", link * MIB);
    }

    fn nvme(&mut self) {
        self.services((60.0, 110.0), (10.0, 30.0), (0.1, 0.3));
        let parallel = 24 + self.rng.below(105);
        self.is("parallel", parallel);
        let (read, write) = (self.between(600.0, 1500.0), self.between(600.0, 1500.0));
        self.bandwidth("read_bw", read * MIB);
        self.bandwidth("write_bw", write * MIB);
        let link = self.between(1_500.0, 7_000.0);
        self.bandwidth("link_bw", link * MIB);
        let cap = self.over_decades(50e3, 400e3);
        self.cap("cap_write_iops", cap);
    }

    /// The parameters that all network volumes share.
    fn network(&mut self) {
        self.services((300.0, 1_500.0), (500.0, 2_000.0), (0.1, 0.5));
        let parallel = self.one_of(&[64, 128, 256]);
        self.is("parallel", parallel);
        let link = self.between(1_000.0, 3_000.0);
        self.bandwidth("link_bw", link * MIB);
    }

    fn network_iops_cap(&mut self) {
        self.network();
        let cap = self.over_decades(600.0, 30e3);
        self.cap("cap_iops", cap);
        self.is("cap_unit", "16k");
    }

    fn network_bandwidth_cap(&mut self) {
        self.network();
        let cap = self.over_decades(30.0, 300.0);
        self.bandwidth("cap_bw", cap * MIB);
    }

    fn burst(&mut self) {
        self.network();
        let base = self.over_decades(100.0, 3_000.0);
        let peak = base * self.between(2.0, 10.0);
        // A bucket that runs empty during a measurement would leave no single rate to find.
        let seconds = self.one_of(&[0.01, 7200.0]);
        let (base, peak) = (base / self.slowdown, peak / self.slowdown);
        let tokens = (seconds * (peak - base)).ceil();
        self.is("cap_iops", format_args!("{base:.2}:{tokens}:{peak:.2}"));
    }

    fn ceph(&mut self) {
        let members = 6 + self.rng.below(19);
        self.is("members", members);
        self.services((300.0, 800.0), (800.0, 2_000.0), (0.3, 0.7));
        let parallel = 2 + self.rng.below(7);
        self.is("parallel", parallel);
        self.is("stripe", "4m");
        self.is("hashed", 1);
        self.is("replicas", 3);
        let delay = self.between(100.0, 500.0);
        self.time("delay_us", delay);
        self.is("delay_dist", "exp");
        let link = self.between(1_000.0, 2_500.0);
        self.bandwidth("link_bw", link * MIB);
    }

    fn nfs(&mut self) {
        let (read, write) = (self.between(150.0, 500.0), self.between(300.0, 1_000.0));
        self.time("read_us", read);
        self.time("write_us", write);
        self.is("read_dist", "exp");
        self.is("write_dist", "exp");
        let threads = self.one_of(&[4, 8, 16]);
        self.is("parallel", threads);
        let delay = self.between(200.0, 800.0);
        self.time("delay_us", delay);
        self.is("delay_dist", "uniform:0.5");
        let link = self.one_of(&[112.0, 1_100.0]);
        self.bandwidth("link_bw", link * MIB);
        let worker = self.over_decades(30.0, 300.0);
        self.time("worker_us", worker);
    }

    fn throttled(&mut self) {
        self.services((60.0, 140.0), (20.0, 60.0), (0.1, 0.3));
        let parallel = self.one_of(&[8, 16, 32]);
        self.is("parallel", parallel);
        for key in ["cap_read_iops", "cap_write_iops"] {
            let cap = self.over_decades(500.0, 20e3);
            self.cap(key, cap);
        }
        for key in ["cap_read_bw", "cap_write_bw"] {
            let cap = self.over_decades(20.0, 200.0);
            self.bandwidth(key, cap * MIB);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::SimSpec;
    use super::super::presets::PRESETS;
    use super::*;
    use strum::VariantArray;

    #[test]
    fn drawn_devices_parse_and_are_distinct() {
        for family in DeviceFamily::ALL {
            assert!(PRESETS.iter().any(|preset| preset.name == family.preset()));
            let mut seen = Vec::new();
            for seed in 0..200 {
                let text = family.draw(seed, 1.0);
                let spec = SimSpec::parse(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
                assert!(!seen.contains(&spec), "{text}");
                seen.push(spec);
                assert_eq!(text, family.draw(seed, 1.0));
            }
        }
    }

    #[test]
    fn slowdown_divides_the_rate_of_a_drawn_device() {
        use iosonde_job::plan::Direction;
        for family in [
            DeviceFamily::Nvme,
            DeviceFamily::SataSsd,
            DeviceFamily::NetworkIopsCap,
            DeviceFamily::Nfs,
        ] {
            for seed in 0..20 {
                let device = |slowdown| SimSpec::parse(&family.draw(seed, slowdown)).unwrap();
                let most = |spec: &SimSpec| spec.max_iops(4096, Direction::Read).unwrap();
                let (fast, slow) = (device(1.0), device(20.0));
                let ratio = most(&fast) / most(&slow);
                assert!(
                    (ratio / 20.0 - 1.0).abs() < 0.02,
                    "{family:?} {seed}: {ratio}"
                );
            }
        }
    }

    #[test]
    fn families_are_all_listed() {
        assert_eq!(DeviceFamily::ALL, DeviceFamily::VARIANTS);
    }
}
