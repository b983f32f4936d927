// A worker that computes the digest of a file, as every client of Caudal does (formats/digest.py).
// Its policy allows WebAssembly; that of the page does not.
import { createXXHash128 } from "hash-wasm";

const PIECE = 4 << 20;

self.onmessage = async ({ data }: MessageEvent<Blob>) => {
  try {
    const hash = await createXXHash128();
    hash.init();
    for (let from = 0; from < data.size; from += PIECE) {
      hash.update(new Uint8Array(await data.slice(from, from + PIECE).arrayBuffer()));
      self.postMessage({ read: Math.min(data.size, from + PIECE) });
    }
    self.postMessage({ digest: hash.digest("hex") });
  } catch (error) {
    self.postMessage({ error: String(error) });
  }
};
