//! `iosonde limits`: prints the limits that vendors publish.

mod csv;
mod json;
mod markdown;
mod table;
#[cfg(test)]
mod tests;
mod words;

use crate::args::{LimitsArgs, LimitsFormat};
use crate::failure::CommandError;
use crate::output::Output;
use iosonde_job::quote_shell_word;
use iosonde_limits::{Limits, LimitsError, Query};
use iosonde_machine::bounded_read;
use std::borrow::Cow;
use std::path::Path;

/// Prints the promise for one product, or lists all products.
pub(crate) fn run(args: &LimitsArgs) -> Result<(), CommandError> {
    let output = Output::open_report(args.output.as_deref())?;
    output.save(&answer(args)?)
}

fn answer(args: &LimitsArgs) -> Result<String, CommandError> {
    let limits = read_limits(args.file.as_deref())?;
    let Some(product) = &args.product else {
        let machine = args.machine.as_deref();
        if let Some(error) = machine.and_then(|name| limits.refuse_machine_without_disks(name)) {
            return Err(refused(error));
        }
        if let Some(machine) = machine {
            return Err(machine_alone(&limits, machine));
        }
        if let Some(option) = args.about_a_product() {
            return Err(CommandError::usage(
                format!("--{option} needs a product"),
                "name a product; `iosonde limits` lists all products",
            ));
        }
        let list = limits.list();
        return match args.format {
            LimitsFormat::Table => Ok(table::products_table(&list)),
            LimitsFormat::Json => json::products_json(&list),
            LimitsFormat::Csv => Ok(csv::products_csv(&list)),
            LimitsFormat::Markdown => Ok(markdown::products_markdown(&list)),
        };
    };
    let query = query(product, args).map_err(refused)?;
    let promise = limits
        .evaluate(&query)
        .map_err(|error| refused_product(&limits, args, &query, error))?;
    match args.format {
        LimitsFormat::Table => Ok(table::promise(&promise)),
        LimitsFormat::Json => json::promise(&promise),
        LimitsFormat::Csv => Ok(csv::promise(&promise)),
        LimitsFormat::Markdown => Ok(markdown::promise(&promise)),
    }
}

/// The usage error for a product without an answer. The remedy for a missing parameter is in terms
/// of options, and a whole command if the product alone was given.
fn refused_product(
    limits: &Limits,
    args: &LimitsArgs,
    query: &Query,
    error: LimitsError,
) -> CommandError {
    let LimitsError::Missing { parameter, .. } = error else {
        return refused(error);
    };
    let (values, is_answered) = limits.example_values(query, parameter);
    let options = values
        .iter()
        .map(|(name, value)| format!("--{name} {}", quote_shell_word(value)));
    let options = options.collect::<Vec<_>>().join(" ");
    let product = args.product.as_deref().unwrap_or_default();
    let is_product_alone =
        args.about_a_product().is_none() && args.file.is_none() && !product.contains(':');
    let help = match (options.is_empty(), is_answered && is_product_alone) {
        (true, _) => format!("choose it with --{parameter}"),
        (false, true) => format!("for example `iosonde limits {product} {options}`"),
        (false, false) => format!("add {options}"),
    };
    CommandError::usage(error.to_string(), help)
}

/// The usage error for a machine without a product: its limits differ between products.
fn machine_alone(limits: &Limits, machine: &str) -> CommandError {
    let products = limits.products_of_machine(machine);
    let help = match products.is_empty() {
        true => "name a product; `iosonde limits` lists all products".to_owned(),
        false => format!("name one that {machine} takes: {}", products.join(", ")),
    };
    CommandError::usage("--machine needs a product", help)
}

/// The published limits, extended by a limits file.
pub(crate) fn read_limits(path: Option<&Path>) -> Result<Cow<'static, Limits>, CommandError> {
    let published = Limits::published();
    let Some(path) = path else {
        return Ok(Cow::Borrowed(published));
    };
    let name = path.display().to_string();
    let text = bounded_read::read_text(path).map_err(|error| {
        CommandError::usage(
            format!("{name}: {}", iosonde_job::errno::describe(&error)),
            "name a limits file; docs/limits.md describes the format",
        )
    })?;
    match published.with_file(&name, &text) {
        Ok(limits) => Ok(Cow::Owned(limits)),
        Err(error) => Err(CommandError::usage(
            error.to_string(),
            "docs/limits.md describes the format of the file",
        )),
    }
}

/// Flags override the values in the product's own text.
fn query(product: &str, args: &LimitsArgs) -> Result<Query, LimitsError> {
    let mut query: Query = product.parse()?;
    query.size_gib = args.size.or(query.size_gib);
    query.disks = args.disks.or(query.disks);
    query.machine = args.machine.clone().or(query.machine);
    query.vcpus = args.vcpus.or(query.vcpus);
    query.cpu = args.cpu.clone().or(query.cpu);
    query.iops = args.iops.or(query.iops);
    query.bandwidth = args.throughput.or(query.bandwidth);
    query.with.extend(args.with.iter().cloned());
    let service = args.service.as_ref().map(|service| service.to_lowercase());
    query.service = service.or(query.service);
    query.as_of = args.as_of.clone().or(query.as_of);
    Ok(query)
}

/// The usage error for arguments without an answer.
pub(crate) fn refused(error: LimitsError) -> CommandError {
    CommandError::usage(error.to_string(), error.remedy())
}
