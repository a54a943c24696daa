// Testcontainers for Node and mqtt.js: the store in a container, for a test in JavaScript or TypeScript.
//
//	npm install && npm test
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, beforeEach, test } from 'node:test'
import mqtt from 'mqtt'
import { GenericContainer, Wait } from 'testcontainers'

const image = process.env.SSCLI_IMAGE ?? 'ghcr.io/sscli/sscli:latest'
const requests = 'statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/command/invoke'
const responses = `clients/${randomUUID()}/response`
let container, controlURL, client

before(async () => {
  // Start, wait, and the addresses.
  container = await new GenericContainer(image)
    .withCommand(['serve', '--listen', '0.0.0.0:1883', '--no-login', '--control', '0.0.0.0:1884'])
    .withExposedPorts(1883, 1884)
    .withWaitStrategy(Wait.forLogMessage('mqtt://'))
    .start()
  controlURL = `http://${container.getHost()}:${container.getMappedPort(1884)}`
  client = await mqtt.connectAsync(`mqtt://${container.getHost()}:${container.getMappedPort(1883)}`, { protocolVersion: 5 })
  await client.subscribeAsync(responses, { qos: 1 })
})

beforeEach(() => control('/reset', {}))

after(async () => {
  await client?.endAsync()
  await container?.stop()
})

async function control(path, body) {
  const answer = await fetch(controlURL + path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) })
  assert.equal(answer.status, 200, await answer.clone().text())
  return answer.json()
}

async function request(...words) {
  const reply = new Promise((resolve) => client.once('message', (topic, payload) => resolve(payload.toString())))
  const payload = `*${words.length}\r\n` + words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')
  await client.publishAsync(requests, payload, {
    qos: 1,
    properties: { responseTopic: responses, correlationData: Buffer.from(randomUUID()), userProperties: { __ts: `${Date.now()}:0:${randomUUID()}` } },
  })
  return reply
}

test('the lease expires', async () => {
  assert.equal(await request('SET', 'lease', 'me', 'NEX', 'PX', '30000'), '+OK\r\n')
  assert.deepEqual(await control('/expire', { by: '31s' }), { expired: 1 })
  assert.equal(await request('GET', 'lease'), '$-1\r\n')
})

test('the store is full', async () => {
  await control('/faults', { verb: 'SET', error: 'quota' })
  assert.equal(await request('SET', 'lease', 'me'), '-ERR the quota has been exceeded\r\n')
  const faults = await (await fetch(controlURL + '/faults')).json()
  assert.deepEqual(faults.map((fault) => fault.fired), [1])
})
