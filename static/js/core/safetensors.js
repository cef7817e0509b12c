/**
 * Reads safetensors files by HTTP Range: the header first, then only the slices that get drawn.
 *
 * Layout of the file (https://huggingface.co/docs/safetensors): 8 bytes little-endian header length,
 * a JSON header `{name: {dtype, shape, data_offsets}}`, then the raw little-endian numbers.
 */

const FIRST_READ = 65_536;

const DTYPES = {
  F64: [8, (buffer) => Float32Array.from(new Float64Array(buffer))],
  F32: [4, (buffer) => new Float32Array(buffer)],
  I64: [8, (buffer) => Float32Array.from(new BigInt64Array(buffer), Number)],
  I32: [4, (buffer) => Float32Array.from(new Int32Array(buffer))],
  U8: [1, (buffer) => Float32Array.from(new Uint8Array(buffer))],
  BOOL: [1, (buffer) => Float32Array.from(new Uint8Array(buffer))],
};

class TensorError extends Error {}

async function range(url, start, end, signal) {
  const response = await fetch(url, { headers: { Range: `bytes=${start}-${end - 1}` }, signal });
  if (!response.ok) throw new TensorError(`${response.status} for ${url}`);
  const buffer = await response.arrayBuffer();
  // A server that ignores Range answers 200 with the whole file.
  return response.status === 206 ? buffer : buffer.slice(start, end);
}

function product(shape) {
  return shape.reduce((total, size) => total * size, 1);
}

class TensorFile {
  constructor(url, header, base, head) {
    this.url = url;
    this.base = base;
    this.metadata = header.__metadata__ ?? {};
    this.header = Object.fromEntries(
      Object.entries(header).filter(([name]) => name !== "__metadata__"),
    );
    this.names = Object.keys(this.header);
    this.head = head; // the bytes that came with the header: small files need no second request
    this.cache = new Map();
  }

  has(name) {
    return Object.hasOwn(this.header, name);
  }

  #entry(name) {
    if (!this.has(name)) throw new TensorError(`no tensor "${name}" in ${this.url}`);
    return this.header[name];
  }

  shape(name) {
    return this.#entry(name).shape;
  }

  /** Numbers `start` (inclusive) to `end` (exclusive) of the tensor's row-major order. */
  async slice(name, start = 0, end = product(this.shape(name))) {
    const { dtype, data_offsets: [first, last] } = this.#entry(name);
    const kind = DTYPES[dtype];
    if (!kind) throw new TensorError(`dtype ${dtype} of "${name}" is not supported`);
    const [size, read] = kind;
    if (start < 0 || end < start || first + end * size > last) {
      throw new TensorError(`slice ${start}:${end} lies outside of "${name}"`);
    }
    const key = `${name}:${start}:${end}`;
    if (!this.cache.has(key)) {
      const wanted = this.#bytes(this.base + first + start * size, this.base + first + end * size);
      const numbers = wanted.then(read);
      numbers.catch(() => this.cache.delete(key));
      this.cache.set(key, numbers);
    }
    return this.cache.get(key);
  }

  async #bytes(start, end) {
    if (end === start) return new ArrayBuffer(0);
    if (end <= this.head.byteLength) return this.head.slice(start, end);
    return range(this.url, start, end);
  }

  /** The whole tensor. */
  async tensor(name) {
    return { shape: this.shape(name), data: await this.slice(name) };
  }

  /** One sub-tensor along the first axis, say one head of `(head, query, key)`. */
  async part(name, index) {
    const shape = this.shape(name);
    const size = product(shape.slice(1));
    return { shape: shape.slice(1), data: await this.slice(name, index * size, (index + 1) * size) };
  }
}

/** Opens a file; the promise rejects with TensorError when it is missing or not safetensors. */
export async function open(url) {
  let head = await range(url, 0, FIRST_READ);
  if (head.byteLength < 8) throw new TensorError(`${url} is too short`);
  const length = Number(new DataView(head).getBigUint64(0, true));
  if (length > 100_000_000) throw new TensorError(`${url} is not a safetensors file`);
  if (head.byteLength < 8 + length) head = await range(url, 0, 8 + length);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(head, 8, length)));
  return new TensorFile(url, header, 8 + length, head);
}
