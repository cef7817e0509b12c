/**
 * The tab's one socket. It carries every topic, reconnects by itself with growing, jittered
 * waits, resumes each topic after the last event seen, and hands out no event twice.
 */
import { msg, t } from "core/i18n";
import { Problem } from "core/problem";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;
const PING_MS = 20_000;
const SILENCE_MS = 45_000;
const IDLE_CLOSE_MS = 30_000;
// Signed out, forbidden, unknown: once a handshake has said so, trying again would change nothing.
const FINAL_CODES = new Map([
  [4401, msg("You are signed out. Reload the page to sign in again.")],
  [4403, msg("The server does not let you connect.")],
  [4404, msg("The server has no connection for live figures at this address.")],
]);

/** Orders event ids `<attempt>-<seq>`; null comes before everything. */
function compareIds(a, b) {
  if (a === b) return 0;
  if (a === null) return -1;
  if (b === null) return 1;
  const [attemptA, seqA] = a.split("-").map(Number);
  const [attemptB, seqB] = b.split("-").map(Number);
  return attemptA - attemptB || seqA - seqB;
}

/** What the tab knows about one topic. The log lets a later follower start from the beginning. */
class Topic {
  constructor(name, after) {
    this.name = name;
    this.followers = new Set();
    this.job = null;
    this.rewind(after);
  }

  rewind(after) {
    this.start = after;
    this.cursor = after;
    this.log = [];
  }

  take(events) {
    const fresh = events.filter((event) => {
      if (compareIds(event.id, this.cursor) <= 0) return false;
      this.cursor = event.id;
      return true;
    });
    this.log.push(...fresh);
    for (const follower of [...this.followers]) follower.events(fresh);
  }
}

/** One caller of `follow`. It has a cursor of its own. */
class Follower {
  constructor(after, handlers) {
    this.cursor = after;
    this.handlers = handlers;
    this.closed = false;
  }

  call(name, ...args) {
    if (!this.closed) this.handlers[name]?.(...args);
  }

  events(events) {
    const fresh = events.filter((event) => compareIds(event.id, this.cursor) > 0);
    if (fresh.length === 0) return;
    this.cursor = fresh.at(-1).id;
    for (const event of fresh) this.call("onEvent", event);
    this.call("onEvents", fresh);
  }
}

class Connection {
  topics = new Map();
  #socket = null;
  #open = false;
  #welcomed = false;
  #failures = 0;
  #heard = 0;
  #retry = 0;
  #beat = 0;
  #idle = 0;
  #status = null;

  follow(name, after, handlers) {
    clearTimeout(this.#idle);
    const follower = new Follower(after, handlers);
    let topic = this.topics.get(name);
    if (!topic) {
      topic = new Topic(name, after);
      this.topics.set(name, topic);
      this.#subscribe(topic);
    } else if (compareIds(after, topic.start) < 0) {
      // Events still under way on this socket would look like the rewound topic's first ones.
      topic.rewind(after);
      this.#drop();
    }
    topic.followers.add(follower);
    this.#connect();
    // What is known already comes after `follow` has returned, like everything else.
    queueMicrotask(() => {
      if (this.#status) follower.call("onStatus", this.#status);
      if (topic.job) follower.call("onJob", topic.job);
      follower.events(topic.log);
    });
    return {
      get cursor() {
        return follower.cursor;
      },
      close: () => this.#unfollow(topic, follower),
    };
  }

  /** Tries at once instead of at the end of the present wait. */
  hurry() {
    if (this.#socket || this.topics.size === 0) return;
    clearTimeout(this.#retry);
    this.#retry = 0;
    this.#connect();
  }

  #unfollow(topic, follower) {
    follower.closed = true;
    topic.followers.delete(follower);
    if (topic.followers.size > 0 || this.topics.get(topic.name) !== topic) return;
    this.topics.delete(topic.name);
    this.#send({ op: "unsub", topic: topic.name });
    if (this.topics.size === 0) {
      clearTimeout(this.#idle);
      this.#idle = setTimeout(() => this.topics.size === 0 && this.#socket?.close(), IDLE_CLOSE_MS);
    }
  }

  #connect() {
    if (this.#socket || this.#retry) return;
    const url = new URL("/ws/v1", location.href);
    url.protocol = url.protocol.replace("http", "ws");
    const socket = new WebSocket(url);
    this.#socket = socket;
    this.#heard = Date.now();
    socket.onopen = () => this.#opened();
    socket.onmessage = (message) => this.#receive(JSON.parse(message.data));
    socket.onclose = (event) => this.#closed(event.code);
  }

  #opened() {
    this.#open = true;
    for (const topic of this.topics.values()) this.#subscribe(topic);
    this.#beat = setInterval(() => {
      if (Date.now() - this.#heard > SILENCE_MS) this.#socket?.close();
      else this.#send({ op: "ping" });
    }, PING_MS);
    this.#tell("live");
  }

  #closed(code) {
    clearInterval(this.#beat);
    // One that was open and lost its right may have another by now: a new sign-in, other classes.
    const refused = FINAL_CODES.has(code) && !this.#welcomed;
    this.#forget();
    if (this.topics.size === 0) return;
    if (refused) {
      const problem = { code: String(code), detail: t(FINAL_CODES.get(code)) };
      for (const topic of [...this.topics.values()]) this.#refuse(topic, problem);
      return;
    }
    this.#tell("reconnecting");
    this.#failures += 1;
    const longest = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (this.#failures - 1));
    this.#wait(longest * (0.5 + Math.random() / 2));
  }

  #drop() {
    if (!this.#socket) return;
    clearInterval(this.#beat);
    Object.assign(this.#socket, { onopen: null, onmessage: null, onclose: null });
    this.#socket.close();
    this.#forget();
  }

  #forget() {
    this.#socket = null;
    this.#open = false;
    this.#welcomed = false;
  }

  #wait(ms) {
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => {
      this.#retry = 0;
      this.#connect();
    }, ms);
  }

  #receive(message) {
    this.#heard = Date.now();
    const topic = this.topics.get(message.topic);
    switch (message.op) {
      case "welcome":
        this.#failures = 0;
        this.#welcomed = true;
        break;
      case "ev":
        this.#tell("live");
        topic?.take(message.events);
        break;
      case "snapshot":
        if (!topic) break;
        topic.job = message.job;
        for (const follower of [...topic.followers]) follower.call("onJob", message.job);
        break;
      case "gap":
        for (const follower of topic?.followers ?? []) follower.call("onGap", message.first);
        break;
      case "lag":
        this.#tell("lagging");
        break;
      case "error":
        if (topic) this.#refuse(topic, message);
        break;
      case "bye":
        // The server restarts: come back when it asked, everyone at another moment.
        this.#drop();
        this.#closed(1012);
        this.#wait((message.retry_ms ?? 1000) * (1 + Math.random()));
        break;
    }
  }

  #refuse(topic, { code, detail = "" }) {
    this.topics.delete(topic.name);
    const problem = new Problem({ code, detail });
    for (const follower of [...topic.followers]) follower.call("onError", problem);
  }

  #subscribe(topic) {
    this.#send({ op: "sub", topic: topic.name, after: topic.cursor });
  }

  #send(message) {
    if (this.#open) this.#socket.send(JSON.stringify(message));
  }

  #tell(status) {
    if (status === this.#status) return;
    this.#status = status;
    for (const topic of this.topics.values()) {
      for (const follower of [...topic.followers]) follower.call("onStatus", status);
    }
  }
}

const connection = new Connection();
addEventListener("online", () => connection.hurry());
document.addEventListener("visibilitychange", () => document.hidden || connection.hurry());

/**
 * Follows a job: its history after the id `after` (null: from the beginning), then what comes.
 *
 * onEvent(event)    every event once, in order
 * onEvents(events)  the same in batches, for what draws once a batch
 * onJob(job)        the row, when subscribed and whenever its state changes
 * onGap(firstId)    events before this id have expired
 * onError(problem)  the topic is refused: an unknown job, or someone else's
 * onStatus(status)  "live", "reconnecting" or "lagging"
 *
 * Returns `{close(), cursor}`.
 */
export function follow(id, { after = null, ...handlers } = {}) {
  return connection.follow(`job:${id}`, after, handlers);
}
