/* Where fields lie in the structs of webgpu.h on wasm32, how long the structs are, and its numbers.
 *
 * The one list: web/layout.py turns it into assertions that are compiled with every build, so a
 * header that says otherwise does not build. */
export const layout = {
  WGPUStringView: { data: 0, length: 4, sizeof: 8 },
  WGPURequestAdapterOptions: { powerPreference: 8, forceFallbackAdapter: 12, sizeof: 24 },
  WGPURequestAdapterCallbackInfo: {
    mode: 4, callback: 8, userdata1: 12, userdata2: 16, sizeof: 20,
  },
  WGPUBufferMapCallbackInfo: { mode: 4, callback: 8, userdata1: 12, userdata2: 16, sizeof: 20 },
  WGPUQueueWorkDoneCallbackInfo: { mode: 4, callback: 8, userdata1: 12, userdata2: 16, sizeof: 20 },
  WGPUPopErrorScopeCallbackInfo: { mode: 4, callback: 8, userdata1: 12, userdata2: 16, sizeof: 20 },
  WGPURequestDeviceCallbackInfo: { mode: 4, callback: 8, userdata1: 12, userdata2: 16, sizeof: 20 },
  WGPUCreateComputePipelineAsyncCallbackInfo: {
    mode: 4, callback: 8, userdata1: 12, userdata2: 16, sizeof: 20,
  },
  WGPUDeviceLostCallbackInfo: { mode: 4, callback: 8, userdata1: 12, userdata2: 16, sizeof: 20 },
  WGPUUncapturedErrorCallbackInfo: { callback: 4, userdata1: 8, userdata2: 12, sizeof: 16 },
  WGPUDeviceDescriptor: {
    label: 4, requiredFeatureCount: 12, requiredFeatures: 16, requiredLimits: 20,
    deviceLostCallbackInfo: 36, uncapturedErrorCallbackInfo: 56, sizeof: 72,
  },
  WGPULimits: {
    maxTextureDimension1D: 4, maxTextureDimension2D: 8, maxTextureDimension3D: 12,
    maxTextureArrayLayers: 16, maxBindGroups: 20, maxBindGroupsPlusVertexBuffers: 24,
    maxBindingsPerBindGroup: 28, maxDynamicUniformBuffersPerPipelineLayout: 32,
    maxDynamicStorageBuffersPerPipelineLayout: 36, maxSampledTexturesPerShaderStage: 40,
    maxSamplersPerShaderStage: 44, maxStorageBuffersPerShaderStage: 48,
    maxStorageTexturesPerShaderStage: 52, maxUniformBuffersPerShaderStage: 56,
    maxUniformBufferBindingSize: 64, maxStorageBufferBindingSize: 72,
    minUniformBufferOffsetAlignment: 80, minStorageBufferOffsetAlignment: 84,
    maxVertexBuffers: 88, maxBufferSize: 96, maxVertexAttributes: 104,
    maxVertexBufferArrayStride: 108, maxInterStageShaderVariables: 112, maxColorAttachments: 116,
    maxColorAttachmentBytesPerSample: 120, maxComputeWorkgroupStorageSize: 124,
    maxComputeInvocationsPerWorkgroup: 128, maxComputeWorkgroupSizeX: 132,
    maxComputeWorkgroupSizeY: 136, maxComputeWorkgroupSizeZ: 140,
    maxComputeWorkgroupsPerDimension: 144, maxImmediateSize: 148, sizeof: 152,
  },
  WGPUAdapterInfo: {
    vendor: 4, architecture: 12, device: 20, description: 28, backendType: 36,
    adapterType: 40, vendorID: 44, deviceID: 48, subgroupMinSize: 52, subgroupMaxSize: 56, sizeof: 60,
  },
  WGPUSupportedFeatures: { featureCount: 0, features: 4, sizeof: 8 },
  WGPUBufferDescriptor: { label: 4, usage: 16, size: 24, mappedAtCreation: 32, sizeof: 40 },
  WGPUBindGroupDescriptor: { label: 4, layout: 12, entryCount: 16, entries: 20, sizeof: 24 },
  WGPUBindGroupEntry: { binding: 4, buffer: 8, offset: 16, size: 24, sizeof: 40 },
  WGPUBindGroupLayoutDescriptor: { label: 4, entryCount: 12, entries: 16, sizeof: 20 },
  WGPUBindGroupLayoutEntry: { binding: 4, visibility: 8, buffer: 24, sizeof: 88 },
  WGPUBufferBindingLayout: { type: 4, hasDynamicOffset: 8, minBindingSize: 16, sizeof: 24 },
  WGPUPipelineLayoutDescriptor: {
    label: 4, bindGroupLayoutCount: 12, bindGroupLayouts: 16, sizeof: 24,
  },
  WGPUShaderModuleDescriptor: { nextInChain: 0, label: 4, sizeof: 12 },
  WGPUShaderSourceWGSL: { code: 8, sizeof: 16 },
  WGPUComputePipelineDescriptor: { label: 4, layout: 12, compute: 16, sizeof: 40 },
  WGPUComputeState: { module: 4, entryPoint: 8, sizeof: 24 },
  WGPUQuerySetDescriptor: { label: 4, type: 12, count: 16, sizeof: 20 },
  WGPUComputePassDescriptor: { timestampWrites: 12, sizeof: 16 },
  WGPUPassTimestampWrites: {
    querySet: 4, beginningOfPassWriteIndex: 8, endOfPassWriteIndex: 12, sizeof: 16,
  },
};

/* Those of flags are JavaScript's own too: they pass as they are. */
export const numbers = {
  WGPUStatus: { Success: 1 },
  WGPUPowerPreference: { LowPower: 1, HighPerformance: 2 },
  WGPUBackendType: { WebGPU: 2 },
  WGPUAdapterType: { CPU: 3, Unknown: 4 },
  WGPUFeatureName: { TimestampQuery: 9, ShaderF16: 11, Subgroups: 18 },
  WGPUErrorFilter: { Validation: 1, OutOfMemory: 2, Internal: 3 },
  WGPUErrorType: { NoError: 1, Validation: 2, OutOfMemory: 3, Internal: 4 },
  WGPUDeviceLostReason: { Unknown: 1, Destroyed: 2 },
  WGPUBufferBindingType: { Uniform: 2, Storage: 3, ReadOnlyStorage: 4 },
  WGPURequestAdapterStatus: { Success: 1, Unavailable: 3 },
  WGPURequestDeviceStatus: { Success: 1, Error: 3 },
  WGPUPopErrorScopeStatus: { Success: 1, Error: 3 },
  WGPUCreatePipelineAsyncStatus: { Success: 1, ValidationError: 3, InternalError: 4 },
  WGPUMapAsyncStatus: { Success: 1, Error: 3, Aborted: 4 },
  WGPUQueueWorkDoneStatus: { Success: 1, Error: 3 },
  WGPUQueryType: { Timestamp: 2 },
  WGPUBufferUsage: { MapRead: 1, CopySrc: 4, CopyDst: 8, Uniform: 64, Storage: 128, QueryResolve: 512 },
  WGPUShaderStage: { Compute: 4 },
  WGPUMapMode: { Read: 1 },
};
