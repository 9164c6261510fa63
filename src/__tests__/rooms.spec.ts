import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

import { describe, expect, it } from 'vitest';

/** From the lowest room to the highest; a file imports from its own room and from lower ones. */
const ROOMS = [
  'model',
  'ui',
  'start',
  'details',
  'dashboard',
  'notebook',
  'commands',
  'notify',
  'panel',
  ''
];

const SRC = join(__dirname, '..');

/** The files of `src/` that each file imports, by their paths below it without the ending. */
function imports(): Map<string, string[]> {
  const files = readdirSync(SRC, { recursive: true, encoding: 'utf-8' }).filter(
    name => /\.tsx?$/.test(name) && !name.includes('__tests__')
  );
  const known = new Set(files.map(stem));
  return new Map(
    files.map(file => {
      const text = readFileSync(join(SRC, file), 'utf-8');
      const names = [...text.matchAll(/from '(\.[^']*)'/g)]
        .map(([, name]) => normalize(join(dirname(file), name)))
        .map(name => (known.has(name) ? name : join(name, 'index')));
      return [stem(file), names.filter(name => known.has(name))];
    })
  );
}

function stem(path: string): string {
  return path.replace(/\.tsx?$/, '');
}

function room(path: string): string {
  return path.includes('/') ? path.split('/')[0] : '';
}

describe('the rooms of src/', () => {
  const graph = imports();

  it('are all known', () => {
    expect(graph.size).toBeGreaterThan(50);
    const rooms = new Set([...graph.keys()].map(room));
    expect([...rooms].sort()).toEqual([...ROOMS].sort());
  });

  it('import only the rooms below them', () => {
    const wrong = [...graph].flatMap(([from, names]) =>
      names
        .filter(name => ROOMS.indexOf(room(name)) > ROOMS.indexOf(room(from)))
        .map(name => `${from} -> ${name}`)
    );
    expect(wrong).toEqual([]);
  });

  it('have no circle', () => {
    const done = new Set<string>();
    const circles: string[] = [];
    const visit = (path: string, way: string[]): void => {
      if (way.includes(path)) {
        circles.push([...way.slice(way.indexOf(path)), path].join(' -> '));
      } else if (!done.has(path)) {
        for (const name of graph.get(path) ?? []) {
          visit(name, [...way, path]);
        }
        done.add(path);
      }
    };
    for (const path of graph.keys()) {
      visit(path, []);
    }
    expect(circles).toEqual([]);
  });
});
