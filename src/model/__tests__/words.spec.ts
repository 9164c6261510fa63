import { describe, expect, it } from 'vitest';

import {
  amount,
  bytes,
  duration,
  moment,
  targetWords,
  totalWords
} from '../words';
import { aCluster, trans } from '../../__tests__/fakes';

describe('words', () => {
  it.each([
    [0, '0 B'],
    [1023, '1023 B'],
    [1536, '1.5 KiB'],
    [8 * 1024 ** 3, '8.0 GiB'],
    [229 * 1024 ** 3, '229 GiB']
  ])('write %i bytes as %s', (n, text) => {
    expect(bytes(n)).toBe(text);
  });

  it.each([
    [-3, '0 s'],
    [59.9, '59 s'],
    [180, '3 min'],
    [3660, '1 h 1 min'],
    [90_000, '1 d 1 h']
  ])('write %d seconds as %s', (seconds, text) => {
    expect(duration(seconds, trans)).toBe(text);
  });

  it('count in the unit of the profile', () => {
    expect(amount(1, 'workers', trans)).toBe('1 worker');
    expect(amount(4, 'GPUs', trans)).toBe('4 GPUs');
    expect(targetWords({ minimum: 1, maximum: 4 }, 'GPUs', trans)).toBe(
      '1 to 4 GPUs'
    );
  });

  it.each([
    [[false, false], '2 clusters, '],
    [[true], '1 cluster (simulation), '],
    [[true, false], '2 clusters (1 of them a simulation), ']
  ])('count %j clusters as %s', (simulations, text) => {
    const clusters = simulations.map(simulated => aCluster({ simulated }));
    expect(totalWords(clusters, trans)).toContain(text);
  });

  it('give the date of a moment only where it is not today', () => {
    const noon = new Date(2025, 4, 6, 12, 30);
    const seconds = noon.getTime() / 1000;
    const today = moment(seconds, noon);
    expect(today).toMatch(/30/);
    expect(moment(seconds, new Date(2025, 4, 7))).toContain(today);
    expect(moment(seconds, new Date(2025, 4, 7))).not.toBe(today);
  });
});
