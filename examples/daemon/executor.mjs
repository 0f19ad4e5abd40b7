// An executor in plain JavaScript: it runs tools and asks the failsoft daemon what to do when one fails.
// Needs nothing but fetch. Usage: FAILSOFT_URL=http://127.0.0.1:8585 FAILSOFT_TOKEN=fsd_… node executor.mjs

const url = process.env.FAILSOFT_URL ?? "http://127.0.0.1:8585";
const token = process.env.FAILSOFT_TOKEN;

// --- tools: the first one is down, the second works, the third loses its answer ---------------------------------------

class HttpError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

const tools = {
  search_flights: async () => {
    throw new HttpError(503, "Service Unavailable");
  },
  search_cached_flights: async () => [{ flight: "LH 400", price: 512 }],
  book_flight: async () => {
    throw Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
  },
};

// --- the daemon -------------------------------------------------------------------------------------------------------

async function post(path, body) {
  const answer = await fetch(url + path, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(2000),
  });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

function describe(error) {
  return { message: error.message, type: error.name, status: error.status ?? null, code: error.code ?? null };
}

async function decide(tool, callId, attempt, error, tried) {
  try {
    return await post("/v1/errors", { tool, call_id: callId, attempt, error: describe(error), tried });
  } catch (trouble) {
    // Without the daemon, nothing is repeated: that is always safe.
    return { strategy: "escalate", reason: `the daemon cannot be asked: ${trouble.message}`, delay: null, tool: null };
  }
}

// --- a call -----------------------------------------------------------------------------------------------------------

async function call(name, callId) {
  const tried = [];
  let tool = name;
  for (let attempt = 1, all = 1; all <= 10; attempt++, all++) {
    try {
      const value = await tools[tool]();
      await post("/v1/outcomes", { tool: name, call_id: callId, status: "succeeded", via: tool, attempts: all }).catch(() => {});
      return value;
    } catch (error) {
      const decision = await decide(tool, callId, attempt, error, tried);
      console.log(`${tool} failed (${error.message}): ${decision.strategy}. ${decision.reason}`);
      if (decision.strategy === "retry") {
        await new Promise((resolve) => setTimeout(resolve, 1000 * (decision.delay ?? 0)));
      } else if (decision.strategy === "alternative_tool" && decision.tool in tools) {
        tried.push(tool);
        tool = decision.tool;
        attempt = 0;
      } else {
        await post("/v1/outcomes", { tool: name, call_id: callId, status: "failed", attempts: all }).catch(() => {});
        return undefined;
      }
    }
  }
}

const run = Date.now().toString(36); // call ids must differ between runs
console.log("search_flights:", await call("search_flights", `search-${run}`));
console.log("book_flight:", await call("book_flight", `book-${run}`));
