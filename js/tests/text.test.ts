import { describe, expect, it } from 'vitest';
import { lineDiff } from '../core/diff';
import { bytes, clock, digits, micros, percent, ratio, ratioWithInterval, usd } from '../core/format';
import { tokenLines, tokens } from '../core/highlight';
import { linear, log } from '../core/scale';

describe('numbers', () => {
  it.each([
    [digits(1723.4), '1723'],
    [digits(33.42), '33.4'],
    [digits(0.018), '0.0180'],
    [digits(0), '0'],
    [micros(226), '226 µs'],
    [micros(41_200), '41.2 ms'],
    [micros(2_500_000), '2.50 s'],
    [micros(null), '–'],
    [ratio(1.4156), '1.42×'],
    [ratio(12.34), '12.3×'],
    [ratioWithInterval(1.34, 1.31, 1.36), '1.34× (1.31–1.36)'],
    [ratioWithInterval(1.34, null, null), '1.34×'],
    [percent(0.182), '18%'],
    [percent(0.004), '0.4%'],
    [usd(0.18), '$0.18'],
    [usd(0.0023), '$0.0023'],
    [clock(130), '2:10'],
    [clock(3723), '1:02:03'],
    [bytes(1_500_000), '1.50 MB']
  ])('%s', (shown, wanted) => {
    expect(shown).toBe(wanted);
  });
});

describe('highlighting', () => {
  const source = '// forge: target cpu\n#include <math.h>\n/* two\nlines */ float f(int64_t n) { return 1.0f / sqrtf(n); } // "x"\nchar c = \'"\';';

  it('loses no character', () => {
    expect(tokens(source).map(t => t.text).join('')).toBe(source);
  });

  it('knows forge lines, directives, comments over lines, types, numbers and calls', () => {
    const kinds = new Map(tokens(source).map(t => [t.text.trim(), t.kind]));
    expect(kinds.get('// forge: target cpu')).toBe('forge');
    expect(kinds.get('#include <math.h>')).toBe('directive');
    expect(kinds.get('/* two\nlines */')).toBe('comment');
    expect(kinds.get('int64_t')).toBe('type');
    expect(kinds.get('1.0f')).toBe('number');
    expect(kinds.get('sqrtf')).toBe('call');
  });

  it('gives as many lines as the source has', () => {
    expect(tokenLines(source)).toHaveLength(source.split('\n').length);
    expect(tokenLines('')).toHaveLength(1);
  });

  it('ends on unfinished strings and comments', () => {
    const broken = '"abc\n/* never closed';
    expect(tokens(broken).map(t => t.text).join('')).toBe(broken);
  });
});

describe('the diff', () => {
  it('keeps changed lines and folds the rest', () => {
    const before = Array.from({ length: 30 }, (_, i) => `line ${i}`);
    const after = before.map((line, i) => (i === 15 ? 'changed' : line));
    const lines = lineDiff(before.join('\n'), after.join('\n'));
    expect(lines[0]).toEqual({ kind: 'fold', count: 12 });
    expect(lines.filter(l => l.kind === 'added').map(l => l.kind !== 'fold' && l.text)).toEqual(['changed']);
    expect(lines.filter(l => l.kind === 'removed')).toHaveLength(1);
  });

  it('sees no change in equal texts, with or without a last newline', () => {
    expect(lineDiff('a\nb', 'a\nb\n').some(l => l.kind === 'added' || l.kind === 'removed')).toBe(false);
  });
});

describe('axes', () => {
  it('have round ticks inside their domain', () => {
    expect(linear([0, 60], [0, 100]).ticks).toEqual([0, 20, 40, 60]);
    expect(log([0.05, 200], [0, 100]).ticks).toEqual([0.1, 1, 10, 100]);
    expect(linear([1, 1], [0, 10])(1)).toBe(0);
  });
});
