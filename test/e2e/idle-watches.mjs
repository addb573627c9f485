// Opens watches over HTTP/2 and leaves them idle, in a process of its own so that the server's memory can be told from
// this one's. Says `open N` once the headers of all of them are here, and `seen N` once each was sent an event. It ends
// with its stdin.
/* global Buffer */
import { connect } from "node:http2";
import process from "node:process";

const { port, ca, path, sessions, streams } = JSON.parse(process.argv[2] ?? "");
const total = sessions * streams;
let [open, seen] = [0, 0];

for (let index = 0; index < sessions; index++) {
  const session = connect(`https://127.0.0.1:${port}`, { ca, maxSessionMemory: 256 });
  session.on("error", fail);
  for (let count = 0; count < streams; count++) {
    const stream = session.request({ ":path": path });
    stream.on("error", fail);
    stream.on("response", (headers) => {
      if (headers[":status"] !== 200) fail(new Error(`status ${headers[":status"]}`));
      if (++open === total) process.stdout.write(`open ${open}\n`);
    });
    stream.on("data", (chunk) => {
      if (Buffer.isBuffer(chunk) && ++seen === total) process.stdout.write(`seen ${seen}\n`);
    });
  }
}

process.stdin.resume().on("end", () => process.exit());

function fail(error) {
  process.stdout.write(`failed ${error.message}\n`);
  process.exit(1);
}
