//! Selects the proxy for an API server like kubectl: `proxy-url` of the kubeconfig, else
//! `HTTPS_PROXY` (`HTTP_PROXY` for a server without TLS) unless `NO_PROXY` names the server.

use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use kube::config::Kubeconfig;
use std::net::IpAddr;

/// Returns the proxy for a server. `said` is `proxy-url`, `variable` reads the environment.
pub(super) fn proxy(
    server: &Uri,
    said: Option<&str>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<Uri>, String> {
    let read = |text: &str| {
        let whole = match text.contains("://") {
            true => text.to_owned(),
            false => format!("http://{text}"),
        };
        let uri: Result<Uri, _> = whole.parse();
        uri.map_err(|error| format!("the proxy {text} cannot be used: {error}"))
    };
    if let Some(said) = said.filter(|said| !said.is_empty()) {
        return read(said).map(Some);
    }
    let either = |name: &str| {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        set(name).or_else(|| set(&name.to_ascii_lowercase()))
    };
    let is_plain = server.scheme_str() == Some("http");
    let named = either(if is_plain {
        "HTTP_PROXY"
    } else {
        "HTTPS_PROXY"
    });
    let Some(named) = named.filter(|_| !is_loopback(server)) else {
        return Ok(None);
    };
    // The proxy is already known: the matcher only decides whether the server is an exception.
    let matcher = Matcher::builder()
        .all("http://proxy")
        .no(exceptions(&either("NO_PROXY").unwrap_or_default(), server))
        .build();
    match matcher.intercept(server) {
        Some(_) => read(&named).map(Some),
        None => Ok(None),
    }
}

/// Converts a NO_PROXY list for the matcher, which supports neither `*.domain` nor ports.
fn exceptions(list: &str, server: &Uri) -> String {
    let is_plain = server.scheme_str() == Some("http");
    let port = server.port_u16().unwrap_or(if is_plain { 80 } else { 443 });
    let read = |entry: &str| {
        let entry = entry.trim();
        let entry = match entry.strip_prefix("*.") {
            Some(domain) => format!(".{domain}"),
            None => entry.to_owned(),
        };
        match entry.rsplit_once(':') {
            // An entry with several colons is an IPv6 address.
            Some((host, number)) if !host.contains(':') => {
                let is_this = number.parse() == Ok(port);
                is_this.then(|| host.to_owned())
            }
            _ => Some(entry),
        }
    };
    let entries: Vec<String> = list.split(',').filter_map(read).collect();
    entries.join(",")
}

fn is_loopback(server: &Uri) -> bool {
    let host = server.host().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    let address: Option<IpAddr> = address.parse().ok();
    host == "localhost" || address.is_some_and(|address| address.is_loopback())
}

/// Returns the `proxy-url` of the context's cluster.
pub(super) fn proxy_url(file: &Kubeconfig, context: Option<&str>) -> Option<String> {
    let name = context.or(file.current_context.as_deref())?;
    let context = file.contexts.iter().find(|known| known.name == name)?;
    let cluster = &context.context.as_ref()?.cluster;
    let found = file.clusters.iter().find(|known| known.name == *cluster)?;
    found.cluster.as_ref()?.proxy_url.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(server: &str, said: Option<&str>, set: &[(&str, &str)]) -> Option<String> {
        let variable = |name: &str| {
            let found = set.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let found = proxy(&server.parse().unwrap(), said, variable).unwrap();
        found.map(|uri| uri.to_string())
    }

    #[test]
    fn environment_proxy_is_used_unless_no_proxy_matches() {
        let set = |no: &'static str| [("HTTPS_PROXY", "http://me:pw@proxy:3128"), ("no_proxy", no)];
        let through = Some("http://me:pw@proxy:3128/".to_owned());
        assert_eq!(
            with("https://api.example.com:6443", None, &set("")),
            through
        );
        for no in [
            "example.com",
            ".example.com",
            "*.example.com",
            "api.example.com",
            "other, api.example.com:6443",
            "*",
        ] {
            let found = with("https://api.example.com:6443", None, &set(no));
            assert_eq!(found, None, "{no}");
        }
        assert_eq!(
            with("https://10.1.2.3:6443", None, &set("10.0.0.0/8")),
            None
        );
        let elsewhere = with("https://10.1.2.3:6443", None, &set("10.1.2.3:443"));
        assert_eq!(elsewhere, through, "another port");
        // The name of the proxy in the list does not affect the server.
        assert_eq!(with("https://10.1.2.3:6443", None, &set("proxy")), through);
        for server in [
            "https://127.0.0.1:6443",
            "https://localhost:6443",
            "https://[::1]:6443",
        ] {
            assert_eq!(with(server, None, &set("")), None, "{server}");
        }
        assert_eq!(with("http://10.1.2.3", None, &set("")), None);
        let plain = with("http://10.1.2.3", None, &[("http_proxy", "proxy:3128")]);
        assert_eq!(plain.as_deref(), Some("http://proxy:3128/"));
    }

    #[test]
    fn kubeconfig_proxy_overrides_the_environment() {
        let set = [("HTTPS_PROXY", "http://other"), ("NO_PROXY", "*")];
        let found = with("https://10.1.2.3", Some("socks5://here:1080"), &set);
        assert_eq!(found.as_deref(), Some("socks5://here:1080/"));
        let file: Kubeconfig = serde_json::from_value(serde_json::json!({
            "current-context": "a",
            "contexts": [{"name": "a", "context": {"cluster": "c"}}, {"name": "b",
             "context": {"cluster": "d"}}],
            "clusters": [
                {"name": "c", "cluster": {"server": "https://c", "proxy-url": "http://p"}},
                {"name": "d", "cluster": {"server": "https://d"}},
            ],
        }))
        .unwrap();
        assert_eq!(super::proxy_url(&file, None).as_deref(), Some("http://p"));
        assert_eq!(super::proxy_url(&file, Some("b")), None);
    }
}
