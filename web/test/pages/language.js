/* Language models in this host: goldens (docs/checking.md) call by call, ids that are chosen, and seeded samples. */
import { at } from './at.js';

/* The last row's five largest logits: which they are in what order, and how large. Sentences on what is wrong. */
export async function runGoldens(model, cases, tolerance) {
  const wrong = [];
  for (const { name, calls } of cases) {
    await model.reset();
    for (const [i, { tokens, pos, top5 }] of calls.entries()) {
      at(`${name}, call ${i}`);
      const [{ data, dims }] = await model.run([tokens, [pos]]);
      const row = data.slice(-dims.at(-1));
      const best = row.reduce((b, v, k) => (v > row[b] ? k : b), 0);
      if (best !== top5[0][0]) wrong.push(`${name}, call ${i}: ${best} is the likeliest, want ${top5[0][0]}`);
      for (const [id, want] of top5)
        if (!(Math.abs(row[id] - want) <= tolerance)) wrong.push(`${name}, call ${i}: logit ${id} is ${row[id]}, want ${want}`);
    }
  }
  return wrong;
}

/* The texts that these prompts and options give. */
export async function tell(model, prompts) {
  const out = [];
  for (const { prompt, ...options } of prompts) {
    await model.reset();
    let text = '';
    for await (const part of model.generate(prompt, options)) at((text += part.text));
    out.push(text);
  }
  return out;
}
