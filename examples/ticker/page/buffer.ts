// rsocket-js expects Node's Buffer, which browsers do not have.
import { Buffer } from "buffer";

Object.assign(globalThis, { Buffer });
