//! The argument `--beside` of commands that measure.

use crate::failure::CommandError;
use clap::Args;
use iosonde_job::Neighbour;
use iosonde_machine::system_env::SystemEnv;

/// The neighbour of a measurement.
#[derive(Debug, Args)]
pub(crate) struct BesideArgs {
    /// Load of a neighbour beside the measurement, as options of a fio job, e.g. 'rw=write bs=64k
    /// rate=50m'; its figures are shown apart (iosonde run measures alone and beside it; 'none'
    /// leaves the neighbours of a suite out)
    #[arg(long, value_name = "OPTIONS")]
    pub(crate) beside: Option<String>,
}

impl BesideArgs {
    /// Whether the user wants no neighbour, even if a suite names one.
    pub(crate) fn is_none_wanted(&self) -> bool {
        self.beside.as_deref() == Some("none")
    }

    /// The neighbour, if one is given. Errors have their position in the options.
    pub(crate) fn neighbour(&self) -> Result<Option<Neighbour>, CommandError> {
        let Some(text) = self.beside.as_ref().filter(|_| !self.is_none_wanted()) else {
            return Ok(None);
        };
        let neighbour = Neighbour::parse("--beside", text, &SystemEnv::default());
        let neighbour = neighbour.map_err(|wrong| CommandError::Jobs(Box::new(wrong)))?;
        Ok(Some(neighbour))
    }
}
