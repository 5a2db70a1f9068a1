//! Graphics adapters: found, chosen by name, and opened once per worker.

use super::{SimError, WorkerDevice};

#[cfg(not(feature = "wgpu"))]
pub(super) fn open(_: &[String], _: usize) -> Result<Vec<WorkerDevice>, SimError> {
    Err(SimError::Device(
        "this build has no wgpu backend; build with `--features wgpu`, or use backend = \"flex\""
            .to_owned(),
    ))
}

#[cfg(feature = "wgpu")]
pub use with_wgpu::adapter_names;
#[cfg(feature = "wgpu")]
pub(super) use with_wgpu::open;

#[cfg(feature = "wgpu")]
mod with_wgpu {
    use burn::tensor::Device;
    use burn_wgpu::WgpuSetup;
    use burn_wgpu::wgpu;

    use super::{SimError, WorkerDevice};
    use crate::model::Place;

    const NONE: &str = "no graphics adapter found. Install a driver (Vulkan, Metal or DX12; on Debian the software driver is the package mesa-vulkan-drivers), or use backend = \"flex\"";

    /// Turns of one loop that are safe on software drivers. Mesa's takes 65,535 in all loops of a
    /// kernel together (measured: of a sum over 65,534 rows the last two are missing); half of that
    /// leaves room for the tiles of dense products, whose gradients the tests hold to those of
    /// processors at this height.
    const SOFTWARE_LOOP: usize = 1 << 15;

    fn find() -> (wgpu::Instance, Vec<wgpu::Adapter>) {
        // Primary backends alone: OpenGL, which is secondary, lists the same adapters once more.
        let backends = wgpu::Backends::PRIMARY;
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
            backends,
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        });
        let mut adapters = cubecl::future::block_on(instance.enumerate_adapters(backends));
        // Real devices before software ones; the order of the system otherwise.
        adapters.sort_by_key(|adapter| match adapter.get_info().device_type {
            wgpu::DeviceType::DiscreteGpu => 0,
            wgpu::DeviceType::IntegratedGpu => 1,
            wgpu::DeviceType::VirtualGpu => 2,
            wgpu::DeviceType::Other => 3,
            wgpu::DeviceType::Cpu => 4,
        });
        (instance, adapters)
    }

    fn describe(info: &wgpu::AdapterInfo) -> String {
        let software = if info.device_type == wgpu::DeviceType::Cpu {
            ", software"
        } else {
            ""
        };
        let driver = format!("{} {}", info.driver, info.driver_info);
        format!(
            "wgpu: {} ({:?}{software}, {})",
            info.name,
            info.backend,
            driver.trim()
        )
    }

    /// All adapters of this machine, best first.
    pub fn adapter_names() -> Vec<String> {
        find()
            .1
            .iter()
            .map(|adapter| describe(&adapter.get_info()))
            .collect()
    }

    /// One logical device with its own queue per worker; `wanted` are parts of adapter names, used
    /// in turn.
    pub(crate) fn open(wanted: &[String], workers: usize) -> Result<Vec<WorkerDevice>, SimError> {
        let (instance, adapters) = find();
        if adapters.is_empty() {
            return Err(SimError::Device(NONE.to_owned()));
        }
        let chosen: Vec<&wgpu::Adapter> = if wanted.is_empty() {
            vec![&adapters[0]]
        } else {
            wanted
                .iter()
                .map(|name| {
                    let part = name.to_lowercase();
                    adapters
                        .iter()
                        .find(|a| a.get_info().name.to_lowercase().contains(&part))
                        .ok_or_else(|| unknown_adapter(name, &adapters))
                })
                .collect::<Result<_, _>>()?
        };
        (0..workers)
            // One after another: `map` opens the next only when this one is done.
            .map(|rank| open_one(&instance, chosen[rank % chosen.len()]))
            .collect()
    }

    fn unknown_adapter(name: &str, adapters: &[wgpu::Adapter]) -> SimError {
        let known: Vec<String> = adapters.iter().map(|a| a.get_info().name).collect();
        SimError::Device(format!(
            "no adapter's name contains \"{name}\" (device.adapters); this machine has: {}",
            known.join(", ")
        ))
    }

    fn open_one(
        instance: &wgpu::Instance,
        adapter: &wgpu::Adapter,
    ) -> Result<WorkerDevice, SimError> {
        let info = adapter.get_info();
        let description = describe(&info);
        let limits = adapter.limits();
        let request = wgpu::DeviceDescriptor {
            // wgpu grants experimental features only to callers that enable them in unsafe code.
            // Mappable buffers are left out as in cubecl's own setup (cubecl-wgpu,
            // `backend/wgsl.rs`).
            required_features: adapter
                .features()
                .difference(wgpu::Features::MAPPABLE_PRIMARY_BUFFERS)
                .difference(wgpu::Features::all_experimental_mask()),
            // The defaults stop at buffers of 128 MiB, beyond which some drivers fail without a
            // word.
            required_limits: limits.clone(),
            // As in cubecl's own setup: it takes memory in large pieces by itself.
            memory_hints: wgpu::MemoryHints::MemoryUsage,
            ..Default::default()
        };
        let (device, queue) =
            cubecl::future::block_on(adapter.request_device(&request)).map_err(|error| {
                SimError::Device(format!("{description} cannot be opened: {error}"))
            })?;
        let setup = WgpuSetup {
            instance: instance.clone(),
            adapter: adapter.clone(),
            device,
            queue,
            backend: info.backend,
        };
        let device = Device::wgpu_options()
            .setup(setup)
            .init()
            .map_err(|error| SimError::Device(format!("{description} cannot be used: {error}")))?;
        Ok(WorkerDevice {
            // The stripe follows from the limits below, when `divide` knows the model and the
            // graph.
            place: Place::unbounded(device),
            description,
            // Work is handed to a queue and done later, also by software drivers.
            queued: true,
            longest_loop: (info.device_type == wgpu::DeviceType::Cpu).then_some(SOFTWARE_LOOP),
            // A tensor is one buffer and is bound as a whole, so that both limits hold for it.
            largest_tensor: Some(
                limits
                    .max_buffer_size
                    .min(limits.max_storage_buffer_binding_size),
            ),
        })
    }
}
