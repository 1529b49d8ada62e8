import { Hash } from './hash';

/** What an upload may be told. */
export interface UploadOptions {
  /** Hash that the server checks! */
  checksum?: 'sha256' | 'crc32c' | false;
  retries?: number;
}

export class Uploader extends Base {
  /**
   * Send a file.
   *
   * @param path of the file? it must exist
   * @throws if the server is gone
   */

  async send(path: string, options: UploadOptions): Promise<void> {
    if (!path) throw new Error('No path! Give one.');
    return this.put(path);
  }
}
