// Testcontainers for .NET and MQTTnet: the store in a container, for a test in C#. Run: dotnet test
//
// Nobody has run this file yet: where sscli is developed, there is no .NET.
using System.Net.Http.Json;
using System.Text;
using DotNet.Testcontainers.Builders;
using DotNet.Testcontainers.Containers;
using MQTTnet;
using MQTTnet.Client;
using MQTTnet.Formatter;
using MQTTnet.Protocol;
using Xunit;

public sealed class StoreTests : IAsyncLifetime
{
    const string Requests = "statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/command/invoke";
    readonly string responses = $"clients/{Guid.NewGuid()}/response";
    readonly IMqttClient client = new MqttFactory().CreateMqttClient();
    readonly HttpClient control = new();

    // Start and wait.
    static readonly IContainer container = new ContainerBuilder()
        .WithImage(Environment.GetEnvironmentVariable("SSCLI_IMAGE") ?? "ghcr.io/sscli/sscli:latest")
        .WithCommand("serve", "--listen", "0.0.0.0:1883", "--no-login", "--control", "0.0.0.0:1884")
        .WithPortBinding(1883, true)
        .WithPortBinding(1884, true)
        .WithWaitStrategy(Wait.ForUnixContainer().UntilMessageIsLogged("mqtt://"))
        .Build();
    static readonly Task started = container.StartAsync();

    public async Task InitializeAsync()
    {
        await started;
        // The addresses.
        control.BaseAddress = new Uri($"http://{container.Hostname}:{container.GetMappedPublicPort(1884)}");
        await Control("/reset", new { });
        await client.ConnectAsync(new MqttClientOptionsBuilder()
            .WithTcpServer(container.Hostname, container.GetMappedPublicPort(1883))
            .WithProtocolVersion(MqttProtocolVersion.V500).Build());
        await client.SubscribeAsync(responses, MqttQualityOfServiceLevel.AtLeastOnce);
    }

    // The container stops with the test process, when the reaper of Testcontainers removes it.
    public async Task DisposeAsync() => await client.DisconnectAsync();

    async Task<string> Control(string path, object body)
    {
        var answer = await control.PostAsJsonAsync(path, body);
        answer.EnsureSuccessStatusCode();
        return await answer.Content.ReadAsStringAsync();
    }

    async Task<string> Request(params string[] words)
    {
        var reply = new TaskCompletionSource<string>();
        Task Received(MqttApplicationMessageReceivedEventArgs e)
        {
            reply.TrySetResult(Encoding.UTF8.GetString(e.ApplicationMessage.PayloadSegment));
            return Task.CompletedTask;
        }
        client.ApplicationMessageReceivedAsync += Received;
        var payload = $"*{words.Length}\r\n" + string.Concat(words.Select(word => $"${Encoding.UTF8.GetByteCount(word)}\r\n{word}\r\n"));
        await client.PublishAsync(new MqttApplicationMessageBuilder()
            .WithTopic(Requests).WithPayload(payload).WithQualityOfServiceLevel(MqttQualityOfServiceLevel.AtLeastOnce)
            .WithResponseTopic(responses).WithCorrelationData(Guid.NewGuid().ToByteArray())
            .WithUserProperty("__ts", $"{DateTimeOffset.UtcNow.ToUnixTimeMilliseconds()}:0:{Guid.NewGuid()}").Build());
        var text = await reply.Task.WaitAsync(TimeSpan.FromMinutes(1));
        client.ApplicationMessageReceivedAsync -= Received;
        return text;
    }

    [Fact]
    public async Task TheLeaseExpires()
    {
        Assert.Equal("+OK\r\n", await Request("SET", "lease", "me", "NEX", "PX", "30000"));
        Assert.Equal("{\"expired\":1}\n", await Control("/expire", new { by = "31s" }));
        Assert.Equal("$-1\r\n", await Request("GET", "lease"));
    }

    [Fact]
    public async Task TheStoreIsFull()
    {
        await Control("/faults", new { verb = "SET", error = "quota" });
        Assert.Equal("-ERR the quota has been exceeded\r\n", await Request("SET", "lease", "me"));
        Assert.Contains("\"fired\":1", await control.GetStringAsync("/faults"));
    }
}
