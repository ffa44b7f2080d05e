//! The same contract as the local engine, kept by a pod of a Kubernetes cluster: plans to results, where the volume is.
//!
//! [`ClusterRunner::open`] asks whether the run can be done at all ([`preflight`]), creates one Job that owns everything else
//! ([`manifest`]), waits for its pod (`lifecycle`) with what hinders it in words ([`diagnose`]), sends the agent into it
//! (`transport`), and is a [`Session`](iosonde_result::session::Session) from then on.

mod agent_upload;
mod any;
mod api;
mod attach;
pub mod clock;
mod collect;
mod connect;
mod device_consent;
pub mod diagnose;
pub mod image;
pub mod leftovers;
mod lifecycle;
pub mod manifest;
mod namespace;
mod node_watch;
mod nodes;
pub mod options;
mod patch;
mod pod_command;
mod pods;
pub mod preflight;
mod reconnect;
pub mod render;
mod runner;
mod session;
pub mod survey;
mod together;
mod transport;
mod volume_origin;

pub use any::AnySession;
pub use attach::{Attached, attach};
pub use collect::{Collected, collect};
pub use connect::Cluster;
pub use options::{AgentProgram, ClusterOptions, Placement, Pods, VolumeMode};
pub use pods::PodsSession;
pub use runner::{Checked, ClusterRunner, check};
pub use session::{ClusterSession, Told, Watch};
