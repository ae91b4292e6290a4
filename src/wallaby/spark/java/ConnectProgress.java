package wallaby;

import java.lang.reflect.Method;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.DAGScheduler;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.SparkListenerTaskStart;
import org.apache.spark.scheduler.StageInfo;
import org.apache.spark.sql.connect.service.SparkConnectService$;
import scala.Option;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

/**
 * Tells the clients of Spark Connect how far a query is.
 *
 * Spark Connect counts the tasks of an operation's jobs. The job of a query has none (see QueryJobs.java). So Connect's own
 * listener, and no other, is told of one more stage, whose tasks are the splits that the query reads.
 *
 * Spark compiles this file in the driver with Janino; see PlanWriter.java for what that means.
 */
public class ConnectProgress {
    private static final String TAGS = "spark.job.tags";
    private static final Seq NONE = (Seq) Nil$.MODULE$;

    /** Spark's own numbers of stages, so that no other stage has the same. */
    private final AtomicInteger stages;

    public ConnectProgress(SparkContext context) throws ReflectiveOperationException {
        Method numbers = DAGScheduler.class.getDeclaredMethod("nextStageId", new Class[0]);
        numbers.setAccessible(true);
        stages = (AtomicInteger) numbers.invoke(context.dagScheduler(), new Object[0]);
    }

    /** Begin a stage of an operation, which is known by its tag. Returns the number of the stage. */
    public int begin(int job, String tag, int tasks) {
        int stage = stages.getAndIncrement();
        Properties properties = new Properties();
        properties.setProperty(TAGS, tag);
        long now = System.currentTimeMillis();
        Seq begun = (Seq) NONE.prepended(stage(stage, tasks));
        listener().onJobStart(new SparkListenerJobStart(job, now, begun, properties));
        return stage;
    }

    /** So many more tasks of a stage have ended. */
    public void advance(int stage, int tasks) {
        SparkListener listener = listener();
        for (int at = 0; at < tasks; at++) {
            listener.onTaskStart(new SparkListenerTaskStart(stage, 0, null));
            listener.onTaskEnd(new SparkListenerTaskEnd(stage, 0, "", null, null, null, null));
        }
    }

    /** The stage has ended. */
    public void end(int stage, int tasks) {
        listener().onStageCompleted(new SparkListenerStageCompleted(stage(stage, tasks)));
    }

    private static StageInfo stage(int stage, int tasks) {
        return new StageInfo(
            stage, 0, "Wallaby", tasks, NONE, NONE, "", null, NONE, Option.empty(), 0, false, 0);
    }

    private static SparkListener listener() {
        return (SparkListener) SparkConnectService$.MODULE$.executionListener().get();
    }
}
