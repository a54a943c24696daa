//! Testcontainers for Rust and rumqttc: the store in a container, for a test in Rust. Run: cargo test
//!
//! Nobody has run this file yet: where sscli is developed, these libraries cannot be had.
#![cfg(test)]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rumqttc::v5::mqttbytes::v5::PublishProperties;
use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::{Client, Connection, Event, Incoming, MqttOptions};
use testcontainers::core::{ContainerPort, WaitFor};
use testcontainers::runners::SyncRunner;
use testcontainers::{Container, GenericImage, ImageExt};

const REQUESTS: &str = "statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/command/invoke";
const RESPONSES: &str = "clients/rust/response";

struct Store {
    control: String,
    client: Client,
    connection: Connection,
    _container: Container<GenericImage>, // stops when it is dropped
}

impl Store {
    /// Start, wait, and the addresses.
    fn start() -> Store {
        let image = std::env::var("SSCLI_IMAGE").unwrap_or("ghcr.io/sscli/sscli:latest".into());
        let (name, tag) = image.rsplit_once(':').expect("an image with a tag");
        let container = GenericImage::new(name, tag)
            .with_exposed_port(ContainerPort::Tcp(1883))
            .with_exposed_port(ContainerPort::Tcp(1884))
            .with_wait_for(WaitFor::message_on_stdout("mqtt://"))
            .with_cmd([
                "serve",
                "--listen",
                "0.0.0.0:1883",
                "--no-login",
                "--control",
                "0.0.0.0:1884",
            ])
            .start()
            .unwrap();
        let host = container.get_host().unwrap().to_string();
        let control = format!(
            "http://{host}:{}",
            container.get_host_port_ipv4(1884).unwrap()
        );
        let options = MqttOptions::new("rust", host, container.get_host_port_ipv4(1883).unwrap());
        let (client, connection) = Client::new(options, 10);
        client.subscribe(RESPONSES, QoS::AtLeastOnce).unwrap();
        let mut store = Store {
            control,
            client,
            connection,
            _container: container,
        };
        store.receive(|event| matches!(event, Incoming::SubAck(_)).then_some(()));
        store
    }

    fn receive<T>(&mut self, wanted: impl Fn(&Incoming) -> Option<T>) -> T {
        loop {
            let event = self
                .connection
                .recv_timeout(Duration::from_secs(60))
                .unwrap()
                .unwrap();
            if let Event::Incoming(packet) = event {
                if let Some(found) = wanted(&packet) {
                    return found;
                }
            }
        }
    }

    fn control(&self, path: &str, body: &str) -> String {
        let request = ureq::post(format!("{}{path}", self.control))
            .header("Content-Type", "application/json");
        request
            .send(body)
            .unwrap()
            .body_mut()
            .read_to_string()
            .unwrap()
    }

    fn request(&mut self, words: &[&str]) -> String {
        let mut payload = format!("*{}\r\n", words.len());
        for word in words {
            payload += &format!("${}\r\n{word}\r\n", word.len());
        }
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_millis();
        let properties = PublishProperties {
            response_topic: Some(RESPONSES.into()),
            correlation_data: Some(now.to_string().into()),
            user_properties: vec![("__ts".into(), format!("{now}:0:rust"))],
            ..Default::default()
        };
        self.client
            .publish_with_properties(REQUESTS, QoS::AtLeastOnce, false, payload, properties)
            .unwrap();
        self.receive(|packet| match packet {
            Incoming::Publish(reply) => Some(String::from_utf8(reply.payload.to_vec()).unwrap()),
            _ => None,
        })
    }
}

#[test]
fn leases_and_faults() {
    let mut store = Store::start();

    store.control("/reset", "{}");
    assert_eq!(
        store.request(&["SET", "lease", "me", "NEX", "PX", "30000"]),
        "+OK\r\n"
    );
    assert_eq!(
        store.control("/expire", r#"{"by": "31s"}"#),
        "{\"expired\":1}\n"
    );
    assert_eq!(store.request(&["GET", "lease"]), "$-1\r\n");

    store.control("/reset", "{}");
    store.control("/faults", r#"{"verb": "SET", "error": "quota"}"#);
    assert_eq!(
        store.request(&["SET", "lease", "me"]),
        "-ERR the quota has been exceeded\r\n"
    );
    let faults = ureq::get(format!("{}/faults", store.control))
        .call()
        .unwrap()
        .body_mut()
        .read_to_string()
        .unwrap();
    assert!(faults.contains("\"fired\":1"), "{faults}");
}
