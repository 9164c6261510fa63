import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import * as ts from 'typescript';
import { describe, expect, it } from 'vitest';

const SRC = join(__dirname, '..');
/** Attributes and options whose text users see or hear. */
const SHOWN = new Set([
  'alt',
  'aria-label',
  'body',
  'caption',
  'hint',
  'label',
  'okLabel',
  'placeholder',
  'title'
]);

/** What a file says to users without asking for a translation, or in a way that no tool can extract. */
function faultsIn(name: string, text: string): string[] {
  const file = ts.createSourceFile(name, text, ts.ScriptTarget.Latest, true);
  const faults: string[] = [];
  const report = (node: ts.Node): void => {
    const { line } = file.getLineAndCharacterOfPosition(node.getStart());
    faults.push(`${name}:${line + 1}: ${node.getText().trim()}`);
  };
  const visit = (node: ts.Node): void => {
    if (ts.isJsxText(node) && isWords(node.text)) {
      report(node);
    } else if (
      (ts.isJsxAttribute(node) || ts.isPropertyAssignment(node)) &&
      SHOWN.has(node.name.getText().replace(/'/g, '')) &&
      node.initializer !== undefined &&
      isLiteral(node.initializer) &&
      isWords(node.initializer.text)
    ) {
      report(node);
    } else if (
      ts.isNewExpression(node) &&
      /Error$/.test(node.expression.getText()) &&
      node.arguments?.[0] !== undefined &&
      hasOwnWords(node.arguments[0])
    ) {
      report(node);
    } else if (ts.isCallExpression(node)) {
      const emits = node.expression.getText() === 'Notification.emit';
      if (
        (isTranslation(node) && !isLiteral(node.arguments[0])) ||
        (emits && hasOwnWords(node.arguments[0]))
      ) {
        report(node);
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return faults;
}

function isWords(text: string): boolean {
  return /\p{L}{2}/u.test(text);
}

function isLiteral(node: ts.Node): node is ts.StringLiteralLike {
  return ts.isStringLiteralLike(node);
}

/** Whether a text has words that are not asked for as a translation. */
function hasOwnWords(node: ts.Node): boolean {
  if (ts.isCallExpression(node) && isTranslation(node)) {
    return false;
  }
  const own =
    (isLiteral(node) || ts.isTemplateHead(node) || isTemplatePart(node)) &&
    isWords(node.text);
  return own || node.getChildren().some(hasOwnWords);
}

function isTemplatePart(
  node: ts.Node
): node is ts.TemplateMiddle | ts.TemplateTail {
  return ts.isTemplateMiddle(node) || ts.isTemplateTail(node);
}

function isTranslation(node: ts.CallExpression): boolean {
  return /\b_?trans\._[_n]$/.test(node.expression.getText());
}

describe('what users read', () => {
  const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter(
    name => /\.tsx?$/.test(name) && !name.includes('__tests__')
  );

  it.each(files)('can be translated: %s', name => {
    expect(faultsIn(name, readFileSync(join(SRC, name), 'utf8'))).toEqual([]);
  });

  it.each([
    '<p>Some words</p>',
    '<button aria-label="Some words" />',
    "const options = { label: 'Some words' };",
    "throw new Error('Some words');",
    'throw new Error(`Some ${words}`);',
    "Notification.emit('Some words');",
    'trans.__(words);',
    'trans._n(`${some} word`, words, 2);'
  ])('is found where it cannot: %s', text => {
    expect(faultsIn('fault.tsx', text)).toHaveLength(1);
  });
});
