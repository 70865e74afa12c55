"""What every generated client for rsocket-js contains: requests, streams with back-pressure, and typed errors."""

from __future__ import annotations

from typing import Final

__all__ = ["RUNTIME"]

_SOURCE: Final = """\
import { Buffer } from "buffer";
import type { Payload, RSocket, RSocketError } from "rsocket-core";

/** What the set-up of a connection must say: `new RSocketConnector({ setup, transport })`. */
export const setup = {
  dataMimeType: "application/json",
  metadataMimeType: "message/x.rsocket.composite-metadata.v0",
};

/** Items to send: they are taken as the server requests them. */
export type Items<T> = Iterable<T> | AsyncIterable<T>;

export interface Options {
  /** Cancels the request. */
  signal?: AbortSignal;
}

export interface StreamOptions extends Options {
  /** How many items the server may send before they are taken; 64 by default. */
  credit?: number;
}

/** An error that the server names by a code. Each of its subclasses has one. */
export class TypedError<Extras = unknown> extends Error {
  constructor(
    message: string,
    readonly code: string,
    readonly extras: Extras,
  ) {
    super(message);
    this.name = new.target.name;
  }
}

type ErrorClass = { readonly code: string; new (message: string, code: string, extras: never): Error };

const DEFAULT_CREDIT = 64;
const MAX_REQUEST = 0x7fffffff;
const APPLICATION_ERROR = 0x201;
const COMPOSITE_ROUTING = 0x80 | 0x7e;

const encoded = (value: unknown): Buffer => Buffer.from(JSON.stringify(value ?? null));
const decoded = <T>(payload: Payload): T => JSON.parse((payload.data ?? Buffer.from("null")).toString("utf8")) as T;
const aborted = (signal: AbortSignal): Error =>
  signal.reason instanceof Error ? signal.reason : new Error("the request was canceled");

/** Return a request with its route as composite metadata. */
function requestTo(route: string, init: unknown): Payload {
  const name = Buffer.from(route);
  if (name.length > 255) throw new RangeError(`the route ${route} is longer than 255 bytes`);
  const size = name.length + 1;
  const head = Buffer.from([COMPOSITE_ROUTING, 0, size >> 8, size & 0xff, name.length]);
  return { data: encoded(init), metadata: Buffer.concat([head, name]) };
}

/** Return the typed error that an error of the connection represents; itself if it has no known code. */
function namedError(error: Error, classes: readonly ErrorClass[]): Error {
  // rsocket-js compiles its class to ES5, where `instanceof` does not work for errors.
  if ((error as Partial<RSocketError>).code !== APPLICATION_ERROR) return error;
  try {
    const body = JSON.parse(error.message) as { code: string; message: string; extras: never };
    const known = classes.find((each) => each.code === body.code);
    return known === undefined ? error : new known(body.message, body.code, body.extras);
  } catch {
    return error;
  }
}

/**
 * The items of a stream. Iterate with `for await`; leaving the loop cancels the stream.
 *
 * The server sends as many items as its credit allows. New credit is granted when half of them have been taken, so a
 * consumer that stops taking items stops the server.
 */
export class Subscription<T> implements AsyncIterableIterator<T> {
  readonly #credit: number;
  readonly #queue: T[] = [];
  readonly #signal: AbortSignal | undefined;
  #taken = 0;
  #end: { error?: Error } | undefined;
  #wake: () => void = () => {};
  #source: { request(n: number): void; cancel(): void } | undefined;

  constructor(options: StreamOptions) {
    this.#credit = Math.min(options.credit ?? DEFAULT_CREDIT, MAX_REQUEST);
    if (!(this.#credit >= 1)) throw new RangeError("credit must be at least 1");
    this.#signal = options.signal;
  }

  /** Start the request with its first credit. */
  start(begin: (credit: number) => { request(n: number): void; cancel(): void }): this {
    if (this.#signal?.aborted) {
      this.fail(aborted(this.#signal));
      return this;
    }
    this.#source = begin(this.#credit);
    this.#signal?.addEventListener("abort", this.#abort, { once: true });
    if (this.#end !== undefined) this.#forget();
    return this;
  }

  push(item: T): void {
    if (this.#end !== undefined) return;
    this.#queue.push(item);
    this.#wake();
  }

  complete(): void {
    this.#finish({});
  }

  fail(error: Error): void {
    this.#finish({ error });
  }

  /** Items that have arrived and have not been taken. */
  get waiting(): number {
    return this.#queue.length;
  }

  /** Cancel the stream, and discard the items that have not been taken. */
  cancel(): void {
    if (this.#end === undefined) this.#source?.cancel();
    this.#queue.length = 0;
    this.#finish({});
  }

  async next(): Promise<IteratorResult<T, undefined>> {
    while (this.#queue.length === 0) {
      if (this.#end?.error !== undefined) {
        const { error } = this.#end;
        this.#end = {};
        throw error;
      }
      if (this.#end !== undefined) return { done: true, value: undefined };
      await new Promise<void>((resolve) => {
        const before = this.#wake;
        this.#wake = () => {
          before();
          resolve();
        };
      });
    }
    const value = this.#queue.shift() as T;
    this.#grant();
    return { done: false, value };
  }

  async return(): Promise<IteratorResult<T, undefined>> {
    this.cancel();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  readonly #abort = (): void => {
    const error = aborted(this.#signal as AbortSignal);
    if (this.#end === undefined) this.#source?.cancel();
    this.#queue.length = 0;
    this.fail(error);
  };

  #grant(): void {
    this.#taken += 1;
    if (this.#end !== undefined || this.#taken < Math.ceil(this.#credit / 2)) return;
    this.#source?.request(this.#taken);
    this.#taken = 0;
  }

  #finish(end: { error?: Error }): void {
    this.#end ??= end;
    this.#forget();
    this.#wake();
  }

  #forget(): void {
    this.#signal?.removeEventListener("abort", this.#abort);
  }
}

interface Sink {
  onNext(payload: Payload, isComplete: boolean): void;
  onComplete(): void;
  onError(error: Error): void;
}

/** Sends items as the other side requests them. `fail` cancels the stream if the items fail. */
class Outgoing<T> {
  readonly #items: AsyncIterator<T> | Iterator<T>;
  readonly #fail: (error: Error) => void;
  #requested = 0;
  #running = false;
  #done = false;
  stream: Sink | undefined;

  constructor(items: Items<T>, fail: (error: Error) => void) {
    this.#items = Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
    this.#fail = fail;
  }

  request(n: number): void {
    this.#requested = Math.min(this.#requested + n, MAX_REQUEST);
    if (!this.#running) void this.#run();
  }

  cancel(): void {
    if (this.#done) return;
    this.#done = true;
    void Promise.resolve(this.#items.return?.()).catch(() => {});
  }

  async #run(): Promise<void> {
    this.#running = true;
    try {
      while (this.#requested > 0 && !this.#done) {
        const { done, value } = await this.#items.next();
        if (this.#done) break;
        if (done) {
          this.#done = true;
          this.stream?.onComplete();
          break;
        }
        this.#requested -= 1;
        this.stream?.onNext({ data: encoded(value) }, false);
      }
    } catch (reason) {
      this.#done = true;
      const error = reason instanceof Error ? reason : new Error(String(reason));
      this.stream?.onError(error);
      this.#fail(error);
    } finally {
      this.#running = false;
    }
  }
}

class Requester {
  readonly #rsocket: RSocket;

  constructor(rsocket: RSocket) {
    this.#rsocket = rsocket;
  }

  call<T>(route: string, init: unknown, errors: readonly ErrorClass[], options: Options): Promise<T> {
    const { signal } = options;
    return new Promise<T>((resolve, reject) => {
      if (signal?.aborted) return reject(aborted(signal));
      const abort = (): void => {
        request.cancel();
        reject(aborted(signal as AbortSignal));
      };
      const end = (): void => signal?.removeEventListener("abort", abort);
      const request = this.#rsocket.requestResponse(requestTo(route, init), {
        onNext: (payload) => {
          end();
          try {
            resolve(decoded<T>(payload));
          } catch (error) {
            reject(error as Error);
          }
        },
        onComplete: () => {
          end();
          reject(new Error(`${route} completed without a response`));
        },
        onError: (error) => {
          end();
          reject(namedError(error, errors));
        },
        onExtension: () => {},
      });
      signal?.addEventListener("abort", abort, { once: true });
    });
  }

  fire(route: string, init: unknown): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      this.#rsocket.fireAndForget(requestTo(route, init), { onComplete: () => resolve(), onError: reject });
    });
  }

  stream<T>(route: string, init: unknown, errors: readonly ErrorClass[], options: StreamOptions): Subscription<T> {
    const found = new Subscription<T>(options);
    return found.start((credit) => {
      const source = this.#rsocket.requestStream(requestTo(route, init), credit, {
        ...this.#receiver(found, errors, () => source.cancel()),
      });
      return source;
    });
  }

  async upload<T>(
    route: string,
    init: unknown,
    items: Items<unknown>,
    errors: readonly ErrorClass[],
    options: Options,
  ): Promise<T> {
    const found = this.channel<T>(route, init, items, errors, { ...options, credit: 1 });
    const { done, value } = await found.next();
    found.cancel();
    if (done) throw new Error(`${route} completed without a response`);
    return value;
  }

  channel<T>(
    route: string,
    init: unknown,
    items: Items<unknown>,
    errors: readonly ErrorClass[],
    options: StreamOptions,
  ): Subscription<T> {
    const found = new Subscription<T>(options);
    const outgoing = new Outgoing(items, (error) => found.fail(error));
    return found.start((credit) => {
      const receiver = this.#receiver(found, errors, () => source.cancel());
      const source = this.#rsocket.requestChannel(requestTo(route, init), credit, false, {
        ...receiver,
        onError: (error) => {
          outgoing.cancel();
          receiver.onError(error);
        },
        request: (n) => outgoing.request(n),
        cancel: () => outgoing.cancel(),
      });
      outgoing.stream = source;
      return {
        request: (n) => source.request(n),
        cancel: () => {
          outgoing.cancel();
          source.cancel();
        },
      };
    });
  }

  #receiver<T>(found: Subscription<T>, errors: readonly ErrorClass[], cancel: () => void) {
    return {
      onNext: (payload: Payload, isComplete: boolean) => {
        try {
          found.push(decoded<T>(payload));
        } catch (error) {
          if (!isComplete) cancel();
          found.fail(error as Error);
        }
        if (isComplete) found.complete();
      },
      onComplete: () => found.complete(),
      onError: (error: Error) => found.fail(namedError(error, errors)),
      onExtension: () => {},
    };
  }
}"""

RUNTIME: Final = [block.split("\n") for block in _SOURCE.split("\n\n\n")]
"""Its blocks of lines."""
