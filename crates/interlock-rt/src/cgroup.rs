//! Which control groups this process is in and what they allow, version 1 or 2, read from the kernel's own files.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// One controller that says something about this process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Group {
    /// "cpu", "cpuset" or "memory".
    pub controller: &'static str,
    /// The group's path as the kernel names it.
    pub path: String,
    /// What it allows: each file that was read, with its value.
    pub allows: Vec<(String, String)>,
}

/// Controllers and the files that say what they allow, of version 2 and of version 1.
const READ: [(&str, &[&str]); 3] = [
    ("cpu", &["cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.rt_runtime_us"]),
    ("cpuset", &["cpuset.cpus.effective", "cpuset.effective_cpus"]),
    ("memory", &["memory.max", "memory.limit_in_bytes"]),
];

/// The groups of this process, empty where the system has none or hides them.
pub fn read() -> Vec<Group> {
    let file = |path| read_to_string(path).unwrap_or_default();
    read_from(&file("/proc/self/cgroup"), &file("/proc/self/mounts"))
}

fn read_from(memberships: &str, mounts: &str) -> Vec<Group> {
    let found = READ.iter().filter_map(|(controller, files)| {
        let (path, root) = place(controller, memberships, mounts)?;
        // Inside a container the path may be one of the host's; what is mounted is then the group itself.
        let below = root.join(path.trim_start_matches('/'));
        let folder = if below.is_dir() { below } else { root };
        let allows: Vec<_> =
            files.iter().filter_map(|name| Some(((*name).to_owned(), value(&folder, name)?))).collect();
        (!allows.is_empty()).then_some(Group { controller, path, allows })
    });
    found.collect()
}

fn value(folder: &Path, name: &str) -> Option<String> {
    read_to_string(folder.join(name)).ok().map(|text| text.trim().to_owned())
}

/// Path of the process's group and where its tree is mounted: the controller's own, else the unified one.
fn place(controller: &str, memberships: &str, mounts: &str) -> Option<(String, PathBuf)> {
    let lines = || memberships.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let own = lines().find(|(names, _)| names.split(',').any(|name| name == controller));
    let (_, path) = own.or_else(|| lines().find(|(names, _)| names.is_empty()))?;
    let mount = mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (point, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
        let fits = match own {
            Some(_) => kind == "cgroup" && options.split(',').any(|option| option == controller),
            None => kind == "cgroup2",
        };
        fits.then_some(point)
    })?;
    Some((path.to_owned(), PathBuf::from(mount)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let root = std::env::temp_dir().join(format!("interlock-cgroup-{name}-{}", std::process::id()));
        for (file, text) in files {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn the_unified_tree_is_read_where_the_process_is() {
        let root = tree(
            "two",
            &[("robot/run/cpu.max", "max 100000\n"), ("robot/run/memory.max", "1048576\n"), ("cpu.max", "wrong")],
        );
        let mounts = format!("cgroup2 {} cgroup2 rw,nosuid 0 0\n", root.display());
        let found = read_from("0::/robot/run\n", &mounts);
        std::fs::remove_dir_all(root).unwrap();
        assert_eq!(found.len(), 2, "a controller that says nothing is left out");
        assert_eq!(found[0].path, "/robot/run");
        assert_eq!(found[0].allows, [("cpu.max".to_owned(), "max 100000".to_owned())]);
        assert_eq!(found[1].allows, [("memory.max".to_owned(), "1048576".to_owned())]);
    }

    #[test]
    fn trees_of_version_one_are_read_controller_by_controller() {
        let root = tree("one", &[("cpu/a/cpu.rt_runtime_us", "0"), ("set/b/cpuset.effective_cpus", "0-1")]);
        let at = root.display();
        let mounts = format!("cgroup {at}/cpu cgroup rw,cpu,cpuacct 0 0\ncgroup {at}/set cgroup rw,cpuset 0 0\n");
        let found = read_from("3:cpuset:/b\n2:cpu,cpuacct:/a\n0::/\n", &mounts);
        std::fs::remove_dir_all(root).unwrap();
        assert_eq!(found[0].allows, [("cpu.rt_runtime_us".to_owned(), "0".to_owned())]);
        assert_eq!((found[1].controller, found[1].path.as_str()), ("cpuset", "/b"));
        assert_eq!(found[1].allows, [("cpuset.effective_cpus".to_owned(), "0-1".to_owned())]);
    }

    #[test]
    fn a_system_without_groups_has_none() {
        assert_eq!(read_from("", ""), []);
        assert_eq!(read_from("0::/somewhere\n", "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n"), []);
    }
}
