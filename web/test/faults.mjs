/* What goes wrong below the package and around it, in Node: a GPU that refuses, fails late, throws or is lost, a module
 * that traps, calls that are aborted; and that a model which is disposed of leaves nothing. */
import assert from 'node:assert/strict';
import v8 from 'node:v8';
import vm from 'node:vm';

v8.setFlagsFromString('--expose-gc');
const collect = vm.runInNewContext('gc');
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/* `gpu` with devices that `change` has been given. */
function around(gpu, change) {
  return { requestAdapter: async (options) => {
    const adapter = await gpu.requestAdapter(options);
    if (!adapter) return null;
    const { features, limits, info } = adapter;
    return { features, limits, info, requestDevice: async (descriptor) => {
      const device = await adapter.requestDevice(descriptor);
      await change(device);
      return device;
    } };
  } };
}
/* Calls of `object[name]` go to `work(original, …)`. */
function replace(object, name, work) {
  const original = object[name].bind(object);
  object[name] = (...args) => work(original, ...args);
}

export async function testFaults(test, { gpu, Sconce, Engine, toyFile, refuses }) {
  const load = (change, options) => Sconce.load(toyFile, { gpu: around(gpu, change), ...options });
  const works = async (model) => assert.deepEqual((await model.run([[1], [0]]))[0].dims, [1, 1, 8]);

  await test('faults: a lost device fails the call and says so', async () => {
    const devices = [];
    const model = await load((device) => devices.push(device));
    devices[0].destroy();
    await devices[0].lost;
    await sleep(20);
    const seen = [];
    for (let i = 0; i < 3; i++) await model.run([[1], [0]]).catch((e) => seen.push(e));
    assert.equal(seen.at(-1)?.status, 'device lost', seen.map(String).join('; '));
    assert.ok(seen.at(-1).advice);
    await model.dispose();
  });

  await test('faults: a device that is refused', () =>
    refuses(() => load(() => Promise.reject(new DOMException('not today', 'OperationError'))), /not today/, 'no device'));

  await test('faults: no memory on the device is the load\'s error, thrown or told to a scope', async () => {
    const thrown = (device) => {
      let n = 0;
      replace(device, 'createBuffer', (create, descriptor) => {
        if (n++ > 2) throw new RangeError('too large');
        return create(descriptor);
      });
    };
    class GPUOutOfMemoryError {
      message = 'the heap is full';
    }
    const told = (device) => {
      const scopes = [];
      replace(device, 'pushErrorScope', (push, filter) => push(scopes.push(filter) && filter));
      replace(device, 'popErrorScope', async (pop) => {
        const filter = scopes.pop();
        return (await pop()) ?? (filter === 'out-of-memory' ? new GPUOutOfMemoryError() : null);
      });
    };
    for (const [change, text] of [[thrown, /./], [told, /the heap is full/]]) {
      const error = await load(change).then(() => null, (e) => e);
      assert.equal(error?.status, 'out of GPU memory', String(error));
      assert.match(error.message, text);
      assert.ok(error.advice);
    }
  });

  await test('faults: a kernel that does not compile ahead is in the log and compiled when a call needs it, or fails that call', async () => {
    for (const reason of ['validation', 'internal']) {
      const lines = [];
      const fails = (device) => {
        device.createComputePipelineAsync = async () => {
          throw Object.assign(new Error(`no ${reason} kernel`), { reason });
        };
      };
      const model = await load(fails, { onLog: ({ text }) => lines.push(text) });
      await works(model);
      assert.match(lines.join('\n'), new RegExp(`no ${reason} kernel`));
      await model.dispose();
    }
    const model = await load((device) => {
      device.createComputePipelineAsync = () => Promise.reject(new Error('not ahead'));
      replace(device, 'createComputePipeline', (create, { compute, ...rest }) => create({ ...rest, compute: { ...compute, entryPoint: 'nowhere' } }));
    });
    await refuses(() => model.run([[1], [0]]), /nowhere/, 'GPU error');
    await model.dispose();
  });

  await test('faults: results that cannot be read', async () => {
    for (const name of ['OperationError', 'AbortError']) {
      const model = await load((device) => replace(device, 'createBuffer', (create, descriptor) => {
        const buffer = create(descriptor);
        buffer.mapAsync = () => Promise.reject(new DOMException('no map today', name));
        return buffer;
      }));
      await refuses(() => model.run([[1], [0]]), /no map today/, 'GPU error');
      await model.dispose();
    }
  });

  await test('faults: what WebGPU throws, and a trap, are SconceErrors; nothing is called after them', async () => {
    const devices = [];
    const model = await load((device) => {
      devices.push(device);
      device.createBindGroup = () => {
        throw new TypeError('no such binding');
      };
    });
    for (let i = 0; i < 2; i++) await refuses(() => model.run([[1], [0]]), /no such binding/, 'GPU error');
    await model.dispose();
    assert.equal((await devices[0].lost).reason, 'destroyed');

    const engine = await Engine.create({ gpu });
    await engine.load(toyFile);
    assert.throws(() => engine.c.free(0xfffffff0), { status: 'internal error', message: /the module failed: .*memory/ });
    await refuses(() => engine.run([[1], [0]]), /the module failed/, 'internal error');
    engine.dispose();
  });

  await test('faults: what a caller\'s log throws is the caller\'s', async () => {
    const thrown = [];
    const listen = (error) => thrown.push(error.message);
    process.on('uncaughtException', listen);
    const model = await load((device) => (device.createComputePipelineAsync = () => Promise.reject(new Error('no'))), {
      onLog: () => {
        throw new Error('of the log');
      } });
    await works(model);
    await model.dispose();
    process.off('uncaughtException', listen);
    assert.equal(thrown[0], 'of the log');
  });

  await test('faults: a run is aborted in the middle, and the next is right', async () => {
    const engine = await Engine.create({ gpu });
    await engine.load(toyFile);
    const [want] = await engine.run([[1, 2], [0]]);
    const control = new AbortController();
    const reason = new Error('enough');
    replace(engine.glue, 'event', (event) => {
      control.abort(reason);
      return event();
    });
    await assert.rejects(engine.run([[3], [0]], { signal: control.signal }), reason);
    assert.deepEqual((await engine.run([[1, 2], [0]]))[0], want);
    engine.dispose();
  });

  await test('faults: an abort behind dispose touches nothing', async () => {
    const engine = await Engine.create({ gpu });
    await engine.load(toyFile);
    const control = new AbortController();
    const story = engine.generate([1], { maxNew: 5, signal: control.signal }, () => {});
    await new Promise((resolve) => replace(engine.glue, 'event', (event) => resolve() ?? event()));
    const uncaught = [];
    const listen = (error) => uncaught.push(error);
    process.on('uncaughtException', listen);
    engine.dispose();
    control.abort();
    await assert.rejects(story, /disposed of/);
    await sleep(20);
    process.off('uncaughtException', listen);
    assert.deepEqual(uncaught, []);
  });

  await test('faults: more data files than there can be', () =>
    refuses(() => Sconce.load(toyFile, { gpu, data: Array(65).fill(toyFile) }), /65 data files, at most 64/));

  await test('faults: dispose gives every object back, ten times over', async () => {
    for (let i = 0; i < 10; i++) {
      const engine = await Engine.create({ gpu });
      await engine.load(toyFile);
      await engine.run([[1], [0]]);
      engine.dispose();
      assert.equal(engine.glue.alive, 0);
    }
  });

  await test('faults: a model that was disposed of keeps no memory of the module', async () => {
    const heaps = [];
    const { instantiate } = WebAssembly;
    WebAssembly.instantiate = async (...args) => {
      const made = await instantiate(...args);
      heaps.push(new WeakRef(made.exports.memory));
      return made;
    };
    const model = await Sconce.load(toyFile, { gpu });
    WebAssembly.instantiate = instantiate;
    const own = heaps.at(-1);
    await works(model);
    assert.ok(model.stats.heapBytes > 1e6);
    collect();
    assert.ok(own.deref(), 'it is there before');
    await model.dispose();
    for (let i = 0; i < 20 && own.deref(); i++) {
      await sleep(20);
      collect();
    }
    assert.equal(own.deref(), undefined);
    assert.ok(model.methods.forward, 'the model is still held');
  });
}
