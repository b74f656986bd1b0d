// C++ and CUDA cut into coloured pieces. Small on purpose: it knows `// forge:` lines, and unlike a
// general highlighter it yields tokens rather than markup, so no source text is ever parsed as HTML.

export type TokenKind = 'plain' | 'comment' | 'forge' | 'string' | 'number' | 'keyword' | 'type' | 'directive' | 'call';

export interface Token {
  kind: TokenKind;
  text: string;
}

const KEYWORDS = new Set(
  ('alignas auto break case catch class const constexpr continue default delete do else enum extern for goto if ' +
    'inline namespace new noexcept operator private public register restrict return sizeof static static_assert ' +
    'static_cast reinterpret_cast struct switch template this throw try typedef typename union using virtual volatile while ' +
    '__global__ __device__ __host__ __shared__ __constant__ __restrict__ __launch_bounds__ __syncthreads true false nullptr').split(' ')
);
const TYPES = new Set(
  ('void bool char short int long unsigned signed float double half size_t ptrdiff_t int8_t uint8_t int16_t int32_t ' +
    'int64_t uint32_t uint64_t kf_bf16 kf_f16 float2 float4 int2 int4 dim3').split(' ')
);

const PIECES =
  /(\/\/ ?forge:[^\n]*)|(\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|(?![\s\S])))|("(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)|(^[ \t]*#(?:[^\n\\]|\\[\s\S])*)|((?:0[xX][\da-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[uUlLfF]*)|([A-Za-z_]\w*)/gm;

export function tokens(source: string): Token[] {
  const out: Token[] = [];
  let end = 0;
  for (const match of source.matchAll(PIECES)) {
    if (match.index > end) {
      out.push({ kind: 'plain', text: source.slice(end, match.index) });
    }
    end = match.index + match[0].length;
    out.push({ kind: kindOf(match, source[end]), text: match[0] });
  }
  if (end < source.length) {
    out.push({ kind: 'plain', text: source.slice(end) });
  }
  return out;
}

function kindOf(match: RegExpMatchArray, following: string | undefined): TokenKind {
  const kinds: TokenKind[] = ['forge', 'comment', 'string', 'directive', 'number'];
  const at = kinds.findIndex((_, i) => match[i + 1] !== undefined);
  if (at >= 0) {
    return kinds[at];
  }
  const word = match[0];
  if (TYPES.has(word) || /_T$/.test(word)) {
    return 'type';
  }
  return KEYWORDS.has(word) ? 'keyword' : following === '(' ? 'call' : 'plain';
}

/** Tokens per line; a token that spans lines (a block comment) is cut at each. */
export function tokenLines(source: string): Token[][] {
  const lines: Token[][] = [[]];
  for (const token of tokens(source)) {
    token.text.split('\n').forEach((text, i) => {
      if (i) {
        lines.push([]);
      }
      if (text) {
        lines[lines.length - 1].push({ kind: token.kind, text });
      }
    });
  }
  return lines;
}
