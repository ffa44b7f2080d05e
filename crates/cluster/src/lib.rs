//! Runs plans in pods of a Kubernetes cluster, with the same contract as the local engine.
//!
//! [`ClusterRunner::open`] checks the prerequisites ([`preflight`]), creates one Job
//! ([`manifest`]), waits for its pod (`lifecycle`, [`diagnose`]), sends the agent (`agent_upload`),
//! and is then a [`Session`](iosonde_result::session::Session). The Job owns all other objects.

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
