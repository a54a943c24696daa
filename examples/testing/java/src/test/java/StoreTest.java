import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.eclipse.paho.mqttv5.client.MqttClient;
import org.eclipse.paho.mqttv5.common.MqttMessage;
import org.eclipse.paho.mqttv5.common.packet.MqttProperties;
import org.eclipse.paho.mqttv5.common.packet.UserProperty;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.wait.strategy.Wait;
import org.testcontainers.utility.DockerImageName;

/**
 * Testcontainers for Java and Paho: the store in a container, for a test in Java. Run: mvn test
 *
 * <p>Nobody has run this file yet: where sscli is developed, these libraries cannot be had.
 */
class StoreTest {
  static final String IMAGE = System.getenv().getOrDefault("SSCLI_IMAGE", "ghcr.io/sscli/sscli:latest");
  static final String REQUESTS = "statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/command/invoke";
  static final String RESPONSES = "clients/" + UUID.randomUUID() + "/response";

  static GenericContainer<?> container;
  static String controlURL;
  static MqttClient client;
  static final LinkedBlockingQueue<String> replies = new LinkedBlockingQueue<>();

  @BeforeAll
  static void start() throws Exception {
    // Start, wait, and the addresses.
    container = new GenericContainer<>(DockerImageName.parse(IMAGE))
        .withCommand("serve", "--listen", "0.0.0.0:1883", "--no-login", "--control", "0.0.0.0:1884")
        .withExposedPorts(1883, 1884)
        .waitingFor(Wait.forLogMessage("(?s).*mqtt://.*", 1));
    container.start();
    controlURL = "http://" + container.getHost() + ":" + container.getMappedPort(1884);
    client = new MqttClient("tcp://" + container.getHost() + ":" + container.getMappedPort(1883), "java-" + UUID.randomUUID(), null);
    client.setTimeToWait(60_000);
    client.connect();
    // Paho for Java calls no listener of subscribe for a subscription that has no identifier.
    client.setCallback(new Replies());
    client.subscribe(RESPONSES, 1);
  }

  @AfterAll
  static void stop() throws Exception {
    if (client != null && client.isConnected()) {
      client.disconnect();
      client.close();
    }
    container.stop();
  }

  @BeforeEach
  void reset() throws Exception {
    control("/reset", "{}");
  }

  static String control(String path, String body) throws Exception {
    var request = HttpRequest.newBuilder(URI.create(controlURL + path)).header("Content-Type", "application/json");
    var answer = HttpClient.newHttpClient().send(
        body == null ? request.GET().build() : request.POST(HttpRequest.BodyPublishers.ofString(body)).build(), BodyHandlers.ofString());
    assertEquals(200, answer.statusCode(), answer.body());
    return answer.body();
  }

  static String request(String... words) throws Exception {
    var payload = new StringBuilder("*" + words.length + "\r\n");
    for (var word : words) {
      payload.append("$").append(word.getBytes(StandardCharsets.UTF_8).length).append("\r\n").append(word).append("\r\n");
    }
    var properties = new MqttProperties();
    properties.setResponseTopic(RESPONSES);
    properties.setCorrelationData(UUID.randomUUID().toString().getBytes(StandardCharsets.UTF_8));
    properties.setUserProperties(List.of(new UserProperty("__ts", System.currentTimeMillis() + ":0:" + UUID.randomUUID())));
    client.publish(REQUESTS, new MqttMessage(payload.toString().getBytes(StandardCharsets.UTF_8), 1, false, properties));
    return replies.poll(60, TimeUnit.SECONDS);
  }

  @Test
  void theLeaseExpires() throws Exception {
    assertEquals("+OK\r\n", request("SET", "lease", "me", "NEX", "PX", "30000"));
    assertEquals("{\"expired\":1}\n", control("/expire", "{\"by\": \"31s\"}"));
    assertEquals("$-1\r\n", request("GET", "lease"));
  }

  @Test
  void theStoreIsFull() throws Exception {
    control("/faults", "{\"verb\": \"SET\", \"error\": \"quota\"}");
    assertEquals("-ERR the quota has been exceeded\r\n", request("SET", "lease", "me"));
    assertTrue(control("/faults", null).contains("\"fired\":1"));
  }

  static class Replies implements org.eclipse.paho.mqttv5.client.MqttCallback {
    @Override public void messageArrived(String topic, MqttMessage message) {
      replies.add(new String(message.getPayload(), StandardCharsets.UTF_8));
    }

    @Override public void disconnected(org.eclipse.paho.mqttv5.client.MqttDisconnectResponse response) {}

    @Override public void mqttErrorOccurred(org.eclipse.paho.mqttv5.common.MqttException exception) {}

    @Override public void deliveryComplete(org.eclipse.paho.mqttv5.client.IMqttToken token) {}

    @Override public void connectComplete(boolean reconnect, String serverURI) {}

    @Override public void authPacketArrived(int reasonCode, MqttProperties properties) {}
  }
}
