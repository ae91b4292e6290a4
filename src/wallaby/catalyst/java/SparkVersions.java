package wallaby;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.internal.io.FileCommitProtocol;
import org.apache.spark.internal.io.HadoopMapReduceCommitProtocol;
import org.apache.spark.scheduler.DAGScheduler;

/**
 * What differs between the versions of Spark in the driver's JVM. Our other classes are compiled against the Spark that is
 * there, so what some version lacks is looked up by its name, here and nowhere else.
 *
 * Spark compiles this file in the driver with Janino; see PlanWriter.java for what that means.
 */
public class SparkVersions {
    /** Numbers of the jobs that wait until all their tasks fit at once. Before 4.3 such a job fails, and is tried again. */
    public static Collection deferredJobs(DAGScheduler scheduler) {
        Map jobs = (Map) ask(scheduler, "deferredBarrierJobs");
        return jobs == null ? new ArrayList() : new ArrayList(jobs.keySet());
    }

    /** The jobs of each execution, by its number, which Spark remembers until the execution ends; empty if it does not. */
    public static Map jobsOfExecutions(DAGScheduler scheduler) {
        Map jobs = (Map) ask(scheduler, "activeQueryToJobs");
        return jobs == null ? new HashMap() : jobs;
    }

    /** Does a write replace just the partitions that it has rows of? Null if this version of Spark does not say it. */
    public static Boolean overwritesPartitions(FileCommitProtocol committer) {
        try {
            Field field = HadoopMapReduceCommitProtocol.class.getDeclaredField("dynamicPartitionOverwrite");
            field.setAccessible(true);
            return Boolean.valueOf(field.getBoolean(committer));
        } catch (ReflectiveOperationException unknown) {
            return null;
        }
    }

    private static Object ask(Object whom, String method) {
        try {
            return whom.getClass().getMethod(method, new Class[0]).invoke(whom, new Object[0]);
        } catch (ReflectiveOperationException hasNone) {
            return null;
        }
    }
}
