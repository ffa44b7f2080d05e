//! The part of a release that a check covers.

use super::Part;
use super::architecture::{Architecture, ClientTarget, Flavour};

/// The parts and clients that a check covers.
#[derive(Clone, Debug)]
pub(crate) struct CheckScope {
    /// None: all parts.
    pub(crate) only: Option<Part>,
    pub(crate) targets: Vec<ClientTarget>,
}

impl CheckScope {
    /// Returns the scope of these arguments. No target stands for all of them.
    pub(crate) fn new(only: Option<Part>, targets: &[ClientTarget]) -> Self {
        let targets = match targets {
            [] => ClientTarget::ALL.to_vec(),
            some => some.to_vec(),
        };
        Self { only, targets }
    }

    pub(crate) fn includes(&self, part: Part) -> bool {
        self.only.is_none_or(|only| only == part)
    }

    /// Returns whether the scope has the client of this architecture and flavour.
    pub(crate) fn has_client(&self, architecture: Architecture, flavour: Flavour) -> bool {
        self.architectures(flavour).contains(&architecture)
    }

    /// Returns the architectures of the clients of this flavour.
    pub(crate) fn architectures(&self, flavour: Flavour) -> Vec<Architecture> {
        let targets = self.targets.iter();
        let targets = targets.filter(|target| target.flavour() == flavour);
        targets.map(|target| target.architecture()).collect()
    }
}
