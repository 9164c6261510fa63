import { describe, expect, it } from 'vitest';

import { ApiError } from '../api';
import { aCluster, FakeServer } from '../../__tests__/fakes';

const request = {
  profile: 'local',
  target: { workers: 2 },
  options: {},
  request_id: 'r1'
};

describe('ClusterApi', () => {
  it('asks for ended clusters too, below any base address', async () => {
    const server = new FakeServer();
    server.clusters = [aCluster()];
    expect(await server.api.clusters()).toEqual([aCluster()]);
  });

  it('sends what a start needs and returns the new cluster', async () => {
    const server = new FakeServer();
    server.routes['POST clusters'] = () => ({ status: 201, body: aCluster() });
    const cluster = await server.api.start(request);
    expect(cluster.id).toBe('c1');
    expect(server.asked).toEqual([{ route: 'POST clusters', body: request }]);
  });

  it('encodes an id, so that it cannot become another path', async () => {
    const server = new FakeServer();
    await server.api.remove('../x?y').catch(() => undefined);
    expect(server.asked[0].route).toBe('DELETE clusters/..%2Fx%3Fy');
  });

  it('accepts an answer without a body', async () => {
    const server = new FakeServer();
    server.routes['DELETE clusters/c1'] = () => ({ status: 204 });
    await expect(server.api.remove('c1')).resolves.toBeUndefined();
  });

  it('turns the server’s refusal into message, hint, detail and status', async () => {
    const server = new FakeServer();
    server.routes['POST clusters'] = () => ({
      status: 422,
      body: {
        message: 'Too many.',
        hint: 'Ask for 4.',
        detail: 'target.workers'
      }
    });
    await expect(server.api.start(request)).rejects.toMatchObject({
      message: 'Too many.',
      hint: 'Ask for 4.',
      detail: 'target.workers',
      status: 422
    });
  });

  it('names the status of an answer that is not ours', async () => {
    const server = new FakeServer();
    server.routes['GET profiles'] = () => ({ status: 502, body: '<html>' });
    await expect(server.api.profiles()).rejects.toMatchObject({
      message: 'The server answered 502.',
      status: 502
    });
  });

  it('says that the server does not answer when the network fails', async () => {
    const server = new FakeServer();
    server.reachable = false;
    const error: unknown = await server.api.clusters().catch(e => e as unknown);
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({ status: 0 });
  });
});
