// feed.ts: the router's events for as long as the page is open. fetch() and not EventSource, which can neither send a token nor say why it failed.
//
// A connection counts as lost when nothing was heard for longer than the router's heartbeat takes: a laptop that slept gets no error. The next one
// says Last-Event-ID and is sent what has changed since. The router ends an answer every few minutes, to be shown the token again: that is no loss.

import { createParser } from "eventsource-parser";
import { Refused, call } from "./api";

const kSilenceMs = 25_000; // the heart beats every 15 s
const kShortestMs = 10_000; // an answer that ends sooner was not meant to
const kFirstPauseMs = 500;
const kLongestPauseMs = 10_000;

export interface FeedHandlers {
  onEvent(event: string, data: string): void;
  onLive(): void;
  /** `refused`: by the router, which is there; trying again would change nothing. */
  onLost(why: string, refused: boolean): void;
}

/** Returns what ends it. */
export function follow(handlers: FeedHandlers): () => void {
  let ended = false;
  let lastId = "";
  let pause = kFirstPauseMs;
  let abort = new AbortController();
  let wake = (): void => {};

  async function read(): Promise<void> {
    abort = new AbortController();
    let watchdog = setTimeout(() => abort.abort(), kSilenceMs);
    try {
      const response = await call("v1/events", {
        headers: lastId === "" ? {} : { "Last-Event-ID": lastId },
        signal: abort.signal,
      });
      handlers.onLive();
      pause = kFirstPauseMs;
      const parser = createParser({
        onEvent: (event) => {
          lastId = event.id ?? lastId;
          handlers.onEvent(event.event ?? "", event.data);
        },
      });
      const text = response.body!.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await text.read();
        if (done) return;
        clearTimeout(watchdog);
        watchdog = setTimeout(() => abort.abort(), kSilenceMs);
        parser.feed(value);
      }
    } finally {
      clearTimeout(watchdog);
    }
  }

  async function run(): Promise<void> {
    while (!ended) {
      let why = "the router ended the connection";
      let refused = false;
      const begun = performance.now();
      try {
        await read();
        if (performance.now() - begun > kShortestMs) continue;
      } catch (error) {
        refused = error instanceof Refused && (error.status === 401 || error.status === 403);
        why = error instanceof Refused ? error.message : "the router cannot be reached";
      }
      if (ended) return;
      handlers.onLost(why, refused);
      if (refused) return;
      await new Promise<void>((resolve) => {
        wake = resolve;
        setTimeout(resolve, pause);
      });
      pause = Math.min(2 * pause, kLongestPauseMs);
    }
  }

  // Back from sleep or from another network: ask at once.
  const hurry = (): void => {
    pause = kFirstPauseMs;
    wake();
  };
  addEventListener("online", hurry);
  void run();
  return () => {
    ended = true;
    removeEventListener("online", hurry);
    abort.abort();
    wake();
  };
}
