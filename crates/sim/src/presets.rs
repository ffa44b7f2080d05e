//! Named devices. Each is a text of keys and values ([`super::keys`]) that a job can override.
//!
//! The values are round figures typical of such devices; none is a measurement of a product.

/// A named device.
#[derive(Debug, Clone, Copy)]
pub struct DevicePreset {
    /// Name.
    pub name: &'static str,
    /// Description of the device.
    pub doc: &'static str,
    /// Parameters, as text.
    pub text: &'static str,
}

/// All presets.
pub const PRESETS: &[DevicePreset] = &[
    DevicePreset {
        name: "hdd",
        doc: "disk of 7200 rpm: about 75 random reads a second one at a time, 175 with 32 queued",
        text: "capacity=4t,read_us=200,write_us=200,fsync_us=8ms,read_bw=180m,write_bw=180m,\
               track_us=1ms,stroke_us=16ms,rotation_us=8333,span=4t,reorder=0.25,queue=32",
    },
    DevicePreset {
        name: "sata-ssd",
        doc: "SSD behind SATA: the link is the bottleneck of large I/Os",
        text: "capacity=960g,parallel=8,read_us=90,read_dist=lognormal:0.2,write_us=50,\
               write_dist=lognormal:0.3,trim_us=500,fsync_us=500,read_bw=150m,write_bw=150m,\
               link_bw=530m,buffer=64m,flush_bw=450m",
    },
    DevicePreset {
        name: "nvme",
        doc: "SSD behind NVMe: many servers, a burst of writes, rare outliers",
        text: "capacity=2t,parallel=64,read_us=80,read_dist=lognormal:0.15,write_us=20,\
               write_dist=bimodal:0.001:1ms,trim_us=200,fsync_us=100,read_bw=1g,write_bw=1g,\
               link_bw=3.2g,cap_write_iops=400k:100k",
    },
    DevicePreset {
        name: "net-iops-cap",
        doc: "network volume with a cap on I/Os of 16 KiB each",
        text: "capacity=500g,parallel=128,read_us=700,read_dist=lognormal:0.3,write_us=1ms,\
               write_dist=lognormal:0.3,fsync_us=1ms,link_bw=1g,cap_iops=5000,cap_unit=16k",
    },
    DevicePreset {
        name: "net-bw-cap",
        doc: "network volume with a cap on bandwidth",
        text: "capacity=500g,parallel=128,read_us=600,read_dist=lognormal:0.3,write_us=900,\
               write_dist=lognormal:0.3,fsync_us=1ms,link_bw=2g,cap_bw=125m",
    },
    DevicePreset {
        name: "burst",
        doc: "network volume that saves up credits: 300 IOPS, 3000 while they last (half an hour)",
        text: "capacity=100g,parallel=128,read_us=700,read_dist=lognormal:0.3,write_us=1ms,\
               write_dist=lognormal:0.3,fsync_us=1ms,cap_iops=300:5400000:3000,cap_bw=128m,\
               cap_unit=256k",
    },
    DevicePreset {
        name: "raid",
        doc: "eight disks, striped and mirrored: each stripe has its own queue",
        text: "capacity=16t,members=8,stripe=64k,replicas=2,read_us=200,write_us=200,fsync_us=8ms,\
               read_bw=180m,write_bw=180m,track_us=1ms,stroke_us=16ms,rotation_us=8333,span=4t,\
               reorder=0.25,queue=32",
    },
    DevicePreset {
        name: "ceph",
        doc: "objects of 4 MiB on twelve nodes, each write on three of them",
        text: "capacity=10t,members=12,parallel=4,stripe=4m,hashed=1,replicas=3,read_us=500,\
               read_dist=lognormal:0.5,write_us=1500,write_dist=lognormal:0.5,fsync_us=200,\
               read_bw=400m,write_bw=200m,delay_us=300,delay_dist=exp,link_bw=1100m",
    },
    DevicePreset {
        name: "nfs",
        doc: "server with eight threads behind 1 Gbit/s: \
              each client process has a limit of its own",
        text: "capacity=1t,parallel=8,read_us=300,read_dist=exp,write_us=600,write_dist=exp,\
               fsync_us=5ms,fsync_dist=exp,delay_us=400,delay_dist=uniform:0.5,link_bw=112m,\
               worker_us=50",
    },
    DevicePreset {
        name: "throttled",
        doc: "SSD behind the limits of a cgroup, apart for reads and writes",
        text: "capacity=960g,parallel=32,read_us=90,write_us=30,fsync_us=500,link_bw=2g,\
               cap_read_iops=2000,cap_write_iops=1000,cap_read_bw=20m,cap_write_bw=10m",
    },
];
